//! The syntax tree of an expression, stored in one vector with children before parents. Printing and compiling it don't
//! recurse.

use super::PREFIX;
use crate::constraint::condition::Condition;
use crate::constraint::program::{MET, Step, UNMET};

#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    Condition(u32),
    Not(u32),
    Both(Join, u32, u32),
}

/// How two expressions are joined. Later variants bind more closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Join {
    Or,
    And,
}

/// The nodes, and the index of the root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    root: u32,
}

/// An item of the stack of what remains to be printed.
enum PrintItem {
    Node { at: u32, within: Within },
    Text(&'static str),
}

/// The context of a node, which determines whether it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Join(Join),
    Negation,
}

/// The target of a step.
#[derive(Clone, Copy)]
enum JumpTarget {
    /// A step, counted from the last one, or `MET` or `UNMET`.
    Known(u32),
    /// The step that was created last.
    Latest,
}

impl Tree {
    pub(super) fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// Sets the root after parsing.
    pub(super) fn with_root(mut self, root: Option<u32>) -> Tree {
        self.root = root.unwrap_or_default();
        self
    }

    pub(super) fn node(&self, at: u32) -> Node {
        self.nodes.get(at as usize).copied().unwrap_or(Node::Condition(0))
    }

    /// Returns the canonical form, which is the same for all expressions that differ only in spaces, quotation marks,
    /// redundant parentheses, spellings of operators, or the order and repetition in sets.
    pub(super) fn print(&self, conditions: &[Condition]) -> String {
        let mut text = format!("{PREFIX} ");
        let mut left = vec![PrintItem::Node { at: self.root, within: Within::Nothing }];
        while let Some(part) = left.pop() {
            let (at, within) = match part {
                PrintItem::Text(word) => {
                    text.push_str(word);
                    continue;
                }
                PrintItem::Node { at, within } => (at, within),
            };
            match self.node(at) {
                Node::Condition(at) => {
                    let condition = conditions.get(at as usize);
                    text.extend(condition.map(ToString::to_string));
                }
                Node::Not(inner) => {
                    text.push_str("not ");
                    left.push(PrintItem::Node { at: inner, within: Within::Negation });
                }
                Node::Both(join, first, second) => {
                    let bare = match within {
                        Within::Nothing => true,
                        Within::Negation => false,
                        Within::Join(outer) => join >= outer,
                    };
                    let (open, close) = if bare { ("", "") } else { ("(", ")") };
                    let within = Within::Join(join);
                    text.push_str(open);
                    left.push(PrintItem::Text(close));
                    left.push(PrintItem::Node { at: second, within });
                    left.push(PrintItem::Text(if join == Join::And { " and " } else { " or " }));
                    left.push(PrintItem::Node { at: first, within });
                }
            }
        }
        text
    }

    /// Compiles the tree to steps. They are created from the last to the first, so that the target of a step exists
    /// before the step.
    pub(super) fn compile(&self) -> Box<[Step]> {
        let mut steps: Vec<Step> = Vec::new();
        let mut left = vec![(self.root, JumpTarget::Known(MET), JumpTarget::Known(UNMET))];
        while let Some((at, then, otherwise)) = left.pop() {
            let latest = (steps.len() as u32).wrapping_sub(1);
            let known = |target| match target {
                JumpTarget::Known(step) => step,
                JumpTarget::Latest => latest,
            };
            let (then, otherwise) = (known(then), known(otherwise));
            match self.node(at) {
                Node::Condition(condition) => steps.push(Step { condition, then, otherwise }),
                Node::Not(inner) => {
                    left.push((inner, JumpTarget::Known(otherwise), JumpTarget::Known(then)));
                }
                Node::Both(join, first, second) => {
                    let (then, otherwise) = (JumpTarget::Known(then), JumpTarget::Known(otherwise));
                    left.push(match join {
                        Join::And => (first, JumpTarget::Latest, otherwise),
                        Join::Or => (first, then, JumpTarget::Latest),
                    });
                    left.push((second, then, otherwise));
                }
            }
        }
        let last = steps.len() as u32 - 1;
        let from_first = |step: u32| if step <= last { last - step } else { step };
        let turned = steps.iter().rev().map(|step| Step {
            condition: step.condition,
            then: from_first(step.then),
            otherwise: from_first(step.otherwise),
        });
        turned.collect()
    }
}
