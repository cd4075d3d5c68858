//! The modules of `src` and their imports, read from the sources: which file uses a definition of which other file.
//!
//! A path is followed through re-exports to the file that defines its last name, so that `use crate::kernel::Handler`
//! is an import of `src/kernel/offers/handler.rs`. Unit tests (`#[cfg(test)]`) and modules that are mounted from
//! outside `src` (`#[path]`) are left out, as are single names that only the body of a macro's call mentions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as FilePath;

use syn::visit::Visit;
use syn::{Attribute, Item, UseTree};

/// The modules of one crate.
pub(crate) struct Modules {
    modules: BTreeMap<Vec<String>, Module>,
}

/// A module: a file, or an inline one within it.
#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    /// Types and traits, in the order of the file.
    types: Vec<String>,
    /// What `use` brings into the module: the name, and the path as it is written.
    imports: Vec<(String, Vec<String>)>,
    /// Modules from which `use` brings everything.
    globs: Vec<Vec<String>>,
    /// All paths of two and more segments that the code names, `use` included.
    paths: Vec<Vec<String>>,
}

/// An import that was found: which file names what in which other file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) name: String,
}

impl Modules {
    /// Reads the crate whose root is `root`, a path from the package's folder.
    pub(crate) fn read(package: &FilePath, root: &str) -> Modules {
        let mut modules = Modules { modules: BTreeMap::new() };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        modules.read_file(package, root, folder, Vec::new());
        modules
    }

    fn read_file(&mut self, package: &FilePath, file: &str, folder: &str, module: Vec<String>) {
        let text = fs::read_to_string(package.join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.read_items(package, file, folder, module, &parsed.items);
    }

    fn read_items(
        &mut self,
        package: &FilePath,
        file: &str,
        folder: &str,
        path: Vec<String>,
        items: &[Item],
    ) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_left_out(attributes(item))) {
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                let mut below = path.clone();
                below.push(name.clone());
                let folder = format!("{folder}/{name}");
                if let Some((_, items)) = &child.content {
                    self.read_items(package, file, &folder, below, items);
                } else {
                    let beside = format!("{folder}.rs");
                    let inside = format!("{folder}/mod.rs");
                    let child_file = if package.join(&beside).exists() { beside } else { inside };
                    self.read_file(package, &child_file, &folder, below);
                }
                continue;
            }
            let (kind, name) = definition(item);
            module.items.extend(name.clone());
            if kind == Kind::Type {
                module.types.extend(name);
            }
            if let Item::Use(import) = item {
                module.read_use(&import.tree, &mut Vec::new());
            }
            module.visit_item(item);
        }
        self.modules.insert(path, module);
    }

    /// All names of types and traits, with the file that defines each.
    pub(crate) fn types(&self) -> impl Iterator<Item = (&str, &str)> {
        self.modules.values().flat_map(|module| {
            module.types.iter().map(|name| (name.as_str(), module.file.as_str()))
        })
    }

    /// What files import from other files.
    pub(crate) fn imports(&self) -> BTreeSet<Import> {
        let mut found = BTreeSet::new();
        for (at, module) in &self.modules {
            for path in &module.paths {
                if let Some((to, name)) = self.resolve(at, path, 0)
                    && *to != module.file
                {
                    found.insert(Import { from: module.file.clone(), to: to.to_owned(), name });
                }
            }
        }
        found
    }

    /// The file that defines what `path` names in the module `at`, and its name. None if it is no item of this crate.
    fn resolve(&self, at: &[String], path: &[String], depth: u32) -> Option<(&str, String)> {
        if depth > 16 {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => return self.descend(&[], rest, depth),
            "self" => return self.descend(at, rest, depth),
            "super" => return self.descend(&at[..at.len().checked_sub(1)?], rest, depth),
            _ => {}
        }
        let child = [at, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) {
            return self.descend(&child, rest, depth);
        }
        let (_, import) = self.modules.get(at)?.imports.iter().find(|(name, _)| name == first)?;
        // `use regex;` names itself.
        if import[0] == *first {
            return None;
        }
        self.resolve(at, &[import, rest].concat(), depth + 1)
    }

    fn descend(&self, at: &[String], path: &[String], depth: u32) -> Option<(&str, String)> {
        let (first, rest) = path.split_first()?;
        if first == "super" {
            return self.descend(&at[..at.len().checked_sub(1)?], rest, depth);
        }
        let child = [at, std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) {
            return self.descend(&child, rest, depth);
        }
        let module = self.modules.get(at)?;
        if module.items.contains(first) {
            return Some((&module.file, first.clone()));
        }
        if let Some((_, import)) = module.imports.iter().find(|(name, _)| name == first) {
            return self.resolve(at, &[import, rest].concat(), depth + 1);
        }
        let through_glob = |glob: &Vec<String>| {
            let whole = [glob.as_slice(), path].concat();
            self.resolve(at, &whole, depth + 1)
        };
        module.globs.iter().find_map(through_glob)
    }
}

impl Module {
    fn read_use(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.read_use(&path.tree, before);
                before.pop();
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.read_import(name.clone(), &name, before);
            }
            UseTree::Rename(rename) => {
                self.read_import(rename.rename.to_string(), &rename.ident.to_string(), before);
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(tree, before);
                }
            }
        }
    }

    fn read_import(&mut self, name: String, last: &str, before: &[String]) {
        let mut path = before.to_vec();
        if last == "self" {
            let name = path.last().cloned().unwrap_or_default();
            self.imports.push((name, path));
            return;
        }
        path.push(last.to_owned());
        self.paths.push(path.clone());
        self.imports.push((name, path));
    }
}

/// Collects the paths of two and more segments that code names.
impl<'ast> Visit<'ast> for Module {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.paths
                .push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // Whatever the macro makes of its tokens, a path among them is most likely one.
        self.paths.extend(paths_in(&call.tokens.to_string()));
        syn::visit::visit_macro(self, call);
    }

    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        // Those within functions count too; those of the module have been read already, and counting twice is harmless.
        self.read_use(&import.tree, &mut Vec::new());
    }
}

/// The paths of two and more segments in a text of tokens; strings are skipped.
fn paths_in(tokens: &str) -> Vec<Vec<String>> {
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let (mut paths, mut path, mut rest) = (Vec::new(), Vec::new(), tokens);
    // Whether the next name goes on with the path.
    let mut goes_on = false;
    while let Some(first) = rest.chars().next() {
        let length = if is_name(first) {
            let name = rest.split(|it| !is_name(it)).next().unwrap_or_default();
            if !goes_on {
                paths.push(std::mem::take(&mut path));
            }
            path.push(name.to_owned());
            goes_on = false;
            name.len()
        } else if let Some(string) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = string.find(|it| {
                let ends = it == '"' && !is_escaped;
                is_escaped = it == '\\' && !is_escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("::") {
            goes_on = true;
            2
        } else {
            goes_on &= first.is_whitespace();
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    paths.push(path);
    paths.retain(|path| path.len() > 1);
    paths
}

/// Goal: an import is seen within a macro's call, too. Method: tokens with paths, names, strings and calls.
#[test]
fn paths_within_macros_are_found() {
    let tokens = r#"{ "a::b \" c::d" : json :: cores (it) , x . y , Kind::A , "" , '"' : crate :: text :: of ( q ) }"#;
    let found: Vec<String> = paths_in(tokens).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["json::cores", "Kind::A", "crate::text::of"]);
}

#[derive(PartialEq, Eq)]
enum Kind {
    Type,
    Other,
}

fn definition(item: &Item) -> (Kind, Option<String>) {
    let (kind, name) = match item {
        Item::Struct(item) => (Kind::Type, &item.ident),
        Item::Enum(item) => (Kind::Type, &item.ident),
        Item::Union(item) => (Kind::Type, &item.ident),
        Item::Trait(item) => (Kind::Type, &item.ident),
        Item::Type(item) => (Kind::Type, &item.ident),
        Item::Fn(item) => (Kind::Other, &item.sig.ident),
        Item::Const(item) => (Kind::Other, &item.ident),
        Item::Static(item) => (Kind::Other, &item.ident),
        _ => return (Kind::Other, None),
    };
    (kind, Some(name.to_string()))
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether it is for tests only, or mounted from elsewhere.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_path = attribute.path().is_ident("path");
        let condition = attribute.meta.require_list().ok().filter(|list| list.path.is_ident("cfg"));
        let for_tests = condition.is_some_and(|list| {
            let first = list.tokens.clone().into_iter().next().map(|token| token.to_string());
            first.as_deref() == Some("test") || list.tokens.to_string().starts_with("all (test")
        });
        is_path || for_tests
    })
}
