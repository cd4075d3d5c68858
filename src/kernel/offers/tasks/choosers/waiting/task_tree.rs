//! [`TaskTree`]: tasks in their order, of which the next one that fits is found without a look at those that don't.
//!
//! It is a B-tree whose nodes know what the tasks below them need at least ([`LeastNeeds`]). A search goes down only
//! where one may fit. An addition adds to the minima on its way; after a removal they are made anew from the leaf
//! upwards, as far as they depend on what was removed.

use super::least_needs::LeastNeeds;
use crate::kernel::state::offered_amounts::ResourceSums;

/// The most tasks of a leaf, and the most parts of another node.
const NODE_MAX: usize = 32;
/// Nodes with fewer are joined with a neighbour, if that has room.
const NODE_FEW: usize = NODE_MAX / 4;

/// The rank and the tag of a task: its place in the order.
pub(super) type RankedTag = (u64, u64);

/// A task's place and what it needs.
pub(super) type PlacedNeeds = (RankedTag, ResourceSums);

/// Tasks in their order, no two in one place.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskTree {
    root: TreeNode,
    len: usize,
}

#[derive(Clone, Debug)]
struct TreeNode {
    least: LeastNeeds,
    /// No task below it comes before this place, and those of the nodes before it do.
    first: RankedTag,
    parts: NodeParts,
}

#[derive(Clone, Debug)]
enum NodeParts {
    Tasks(Vec<PlacedNeeds>),
    /// Never empty.
    Nodes(Vec<TreeNode>),
}

impl TaskTree {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a task. Returns `false`, and changes nothing, if there is one in its place. O(log tasks).
    pub(super) fn insert(&mut self, place: RankedTag, needs: ResourceSums) -> bool {
        let Ok(half) = self.root.insert((place, needs)) else { return false };
        self.len += 1;
        if let Some(half) = half {
            let root = std::mem::take(&mut self.root);
            self.root = TreeNode::new(root.first, NodeParts::Nodes(vec![root, half]));
        }
        true
    }

    /// Removes the task in this place, and returns what it needs. O(log tasks).
    pub(super) fn remove(&mut self, place: RankedTag) -> Option<ResourceSums> {
        let needs = self.root.remove(place)?;
        self.len -= 1;
        while let NodeParts::Nodes(nodes) = &mut self.root.parts
            && nodes.len() <= 1
        {
            self.root = nodes.pop().unwrap_or_default();
        }
        Some(needs)
    }

    /// The first task after this place, or of all, that fits. What fits must fit as well if it needs less.
    ///
    /// O(log tasks) as long as the tasks below a node have no more than sixteen minima. Otherwise it may go down to
    /// tasks none of which fits.
    pub(super) fn next(
        &self,
        after: Option<RankedTag>,
        fits: &impl Fn(ResourceSums) -> bool,
    ) -> Option<PlacedNeeds> {
        self.root.next(after, fits)
    }

    /// Calls `each` with all tasks, in their order.
    pub(super) fn for_each(&self, each: &mut impl FnMut(PlacedNeeds)) {
        self.root.for_each(each);
    }
}

/// There is a task in the place.
struct PlaceTaken;

impl Default for TreeNode {
    fn default() -> TreeNode {
        TreeNode { least: LeastNeeds::NONE, first: (0, 0), parts: NodeParts::Tasks(Vec::new()) }
    }
}

/// The node in which this place is.
fn at_place(nodes: &[TreeNode], place: RankedTag) -> usize {
    nodes.partition_point(|node| node.first <= place).saturating_sub(1)
}

impl TreeNode {
    fn new(first: RankedTag, parts: NodeParts) -> TreeNode {
        let mut node = TreeNode { least: LeastNeeds::NONE, first, parts };
        node.find_least();
        node
    }

    fn find_least(&mut self) {
        self.least = LeastNeeds::NONE;
        match &self.parts {
            NodeParts::Tasks(tasks) => tasks.iter().for_each(|(_, needs)| self.least.add(*needs)),
            NodeParts::Nodes(nodes) => {
                nodes.iter().for_each(|node| self.least.add_all(&node.least))
            }
        }
    }

    fn len(&self) -> usize {
        match &self.parts {
            NodeParts::Tasks(tasks) => tasks.len(),
            NodeParts::Nodes(nodes) => nodes.len(),
        }
    }

    /// Returns the second half, if it is too large now.
    fn insert(&mut self, (place, needs): PlacedNeeds) -> Result<Option<TreeNode>, PlaceTaken> {
        match &mut self.parts {
            NodeParts::Tasks(tasks) => {
                let Err(at) = tasks.binary_search_by_key(&place, |(place, _)| *place) else {
                    return Err(PlaceTaken);
                };
                tasks.insert(at, (place, needs));
            }
            NodeParts::Nodes(nodes) => {
                let at = at_place(nodes, place);
                if let Some(half) = nodes[at].insert((place, needs))? {
                    nodes.insert(at + 1, half);
                }
            }
        }
        self.first = self.first.min(place);
        self.least.add(needs);
        Ok((self.len() > NODE_MAX).then(|| self.split(place)))
    }

    /// Keeps the first half and returns the second one. If the last place was added last, more may follow: then the
    /// first part is all but that, so that what is added in its order leaves no half empty nodes.
    fn split(&mut self, added: RankedTag) -> TreeNode {
        let half = match &mut self.parts {
            NodeParts::Tasks(tasks) => {
                let is_last = tasks.last().is_some_and(|(place, _)| *place == added);
                let after = tasks.split_off(if is_last { NODE_MAX } else { NODE_MAX / 2 });
                TreeNode::new(after[0].0, NodeParts::Tasks(after))
            }
            NodeParts::Nodes(nodes) => {
                let is_last = nodes.last().is_some_and(|node| node.first == added);
                let after = nodes.split_off(if is_last { NODE_MAX } else { NODE_MAX / 2 });
                TreeNode::new(after[0].first, NodeParts::Nodes(after))
            }
        };
        self.find_least();
        half
    }

    fn remove(&mut self, place: RankedTag) -> Option<ResourceSums> {
        match &mut self.parts {
            NodeParts::Tasks(tasks) => {
                let at = tasks.binary_search_by_key(&place, |(place, _)| *place).ok()?;
                let (_, needs) = tasks.remove(at);
                if self.least.is_merged() || self.least.list().contains(&needs) {
                    self.find_least();
                }
                Some(needs)
            }
            NodeParts::Nodes(nodes) => {
                let at = at_place(nodes, place);
                let before = nodes[at].least;
                let needs = nodes[at].remove(place)?;
                let is_changed = self.least.depend_on(&before, &nodes[at].least);
                if nodes[at].len() < NODE_FEW {
                    join(nodes, at);
                }
                if is_changed {
                    self.find_least();
                }
                Some(needs)
            }
        }
    }

    fn next(
        &self,
        after: Option<RankedTag>,
        fits: &impl Fn(ResourceSums) -> bool,
    ) -> Option<PlacedNeeds> {
        if !self.least.list().iter().any(|needs| fits(*needs)) {
            return None;
        }
        match &self.parts {
            NodeParts::Tasks(tasks) => {
                let from = tasks.partition_point(|(place, _)| Some(*place) <= after);
                tasks[from..].iter().find(|(_, needs)| fits(*needs)).copied()
            }
            NodeParts::Nodes(nodes) => {
                let from = after.map_or(0, |after| at_place(nodes, after));
                nodes[from..].iter().find_map(|node| node.next(after, fits))
            }
        }
    }

    fn for_each(&self, each: &mut impl FnMut(PlacedNeeds)) {
        match &self.parts {
            NodeParts::Tasks(tasks) => tasks.iter().for_each(|task| each(*task)),
            NodeParts::Nodes(nodes) => nodes.iter().for_each(|node| node.for_each(each)),
        }
    }
}

/// Has a node with few parts take those of its neighbour, or its neighbour take its own, if there is room for a while;
/// one without parts is removed.
fn join(nodes: &mut Vec<TreeNode>, at: usize) {
    if nodes[at].len() == 0 {
        nodes.remove(at);
        return;
    }
    let first = if at + 1 < nodes.len() { at } else { at.saturating_sub(1) };
    if first + 1 == nodes.len() || nodes[first].len() + nodes[first + 1].len() > NODE_MAX / 2 {
        return;
    }
    let second = nodes.remove(first + 1);
    match (&mut nodes[first].parts, second.parts) {
        (NodeParts::Tasks(tasks), NodeParts::Tasks(more)) => tasks.extend(more),
        (NodeParts::Nodes(nodes), NodeParts::Nodes(more)) => nodes.extend(more),
        // All leaves are equally deep.
        _ => {}
    }
    nodes[first].find_least();
}

#[cfg(test)]
#[cfg(not(loom))]
impl TaskTree {
    /// How many minima all tasks have.
    pub(super) fn minima(&self) -> usize {
        self.root.least.list().len()
    }

    /// Checks that it is a tree of its tasks, and that its nodes know their minima.
    pub(super) fn check(&self) {
        let (mut tasks, mut last) = (0, None);
        self.for_each(&mut |(place, _)| {
            assert!(last < Some(place), "{place:?} comes after {last:?}");
            last = Some(place);
            tasks += 1;
        });
        assert_eq!(self.len, tasks);
        self.root.check();
    }
}

#[cfg(test)]
#[cfg(not(loom))]
impl TreeNode {
    /// Returns its depth.
    fn check(&self) -> usize {
        assert!(self.len() <= NODE_MAX);
        let mut least: Vec<ResourceSums> = Vec::new();
        self.for_each(&mut |(place, needs)| {
            assert!(self.first <= place);
            let takes_cores = needs.cores > crate::resources::MilliCpus::ZERO;
            if takes_cores && !least.iter().any(|it| it.fits_in(needs)) {
                least.retain(|it| !needs.fits_in(*it));
                least.push(needs);
            }
        });
        let known = self.least.list();
        let is_known = |needs: &ResourceSums| known.iter().any(|it| it.fits_in(*needs));
        assert!(least.iter().all(is_known), "{known:?} of {least:?}");
        if !self.least.is_merged() {
            assert_eq!(known.len(), least.len());
            assert!(known.iter().all(|needs| least.contains(needs)), "{known:?} of {least:?}");
        }
        let NodeParts::Nodes(nodes) = &self.parts else { return 0 };
        for pair in nodes.windows(2) {
            pair[0].for_each(&mut |(place, _)| assert!(place < pair[1].first));
        }
        let depths: Vec<usize> = nodes.iter().map(TreeNode::check).collect();
        assert!(
            nodes.iter().all(|node| node.len() > 0) && depths.iter().all(|it| *it == depths[0])
        );
        depths[0] + 1
    }
}
