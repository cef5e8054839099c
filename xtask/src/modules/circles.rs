//! Circles in a graph of modules: its strongly connected components of two modules or more.
//!
//! Tarjan's algorithm (1972): one walk in depth gives each module a number and the smallest number that it reaches; a module
//! that reaches none smaller than its own closes a component, which lies on top of the stack.

use std::collections::BTreeMap;

use super::resolve::Arrows;

struct Walk<'a> {
    arrows: &'a Arrows,
    numbers: BTreeMap<&'a str, usize>,
    smallest: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    circles: Vec<Vec<String>>,
}

/// The circles, largest first, the modules of each in the order of their names.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let mut walk =
        Walk { arrows, numbers: BTreeMap::new(), smallest: BTreeMap::new(), stack: Vec::new(), circles: Vec::new() };
    for module in arrows.keys() {
        if !walk.numbers.contains_key(module.as_str()) {
            walk.enter(module);
        }
    }
    walk.circles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    walk.circles
}

impl<'a> Walk<'a> {
    fn enter(&mut self, module: &'a str) {
        let number = self.numbers.len();
        self.numbers.insert(module, number);
        self.smallest.insert(module, number);
        self.stack.push(module);
        for target in self.arrows.get(module).into_iter().flat_map(BTreeMap::keys) {
            let reached = match self.numbers.get(target.as_str()) {
                None => {
                    self.enter(target);
                    self.smallest[target.as_str()]
                }
                Some(number) if self.stack.contains(&target.as_str()) => *number,
                Some(_) => continue,
            };
            let smallest = self.smallest[module].min(reached);
            self.smallest.insert(module, smallest);
        }
        if self.smallest[module] == number {
            self.close(module);
        }
    }

    fn close(&mut self, module: &str) {
        let start = self.stack.iter().rposition(|open| *open == module).unwrap_or_default();
        let mut circle: Vec<String> = self.stack.drain(start..).map(str::to_owned).collect();
        if circle.len() > 1 {
            circle.sort();
            self.circles.push(circle);
        }
    }
}
