//! Which sockets the machine has and on which of them a thread runs: from the system, or made up by a test.
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The sockets of a machine.
pub trait Topology: Send + Sync {
    /// How many sockets there are, at least one.
    fn socket_count(&self) -> usize;

    /// The socket on which the calling thread runs just now, below [`Topology::socket_count`].
    fn current_socket(&self) -> usize;
}

/// The sockets that the system reports: by the package of each processor, and where that is not told, by memory node.
#[derive(Debug)]
pub struct OsTopology {
    /// The socket of each processor.
    sockets: Vec<usize>,
    socket_count: usize,
}

impl Default for OsTopology {
    fn default() -> Self {
        Self::read_from(Path::new("/sys/devices/system"))
    }
}

impl OsTopology {
    /// The topology that a directory tree describes, laid out as the system does. An entry that cannot be read
    /// counts as one socket.
    pub fn read_from(root: &Path) -> Self {
        let by_processor = packages(&root.join("cpu")).or_else(|| nodes(&root.join("node"))).unwrap_or_default();
        let mut names: Vec<usize> = by_processor.iter().map(|&(_, name)| name).collect();
        names.sort_unstable();
        names.dedup();
        let processor_count = by_processor.iter().map(|&(processor, _)| processor + 1).max().unwrap_or(0);
        let mut sockets = vec![0; processor_count];
        for (processor, name) in by_processor {
            sockets[processor] = names.partition_point(|&other| other < name);
        }
        OsTopology { sockets, socket_count: names.len().max(1) }
    }

    /// The socket of a processor; one that was not there at the start counts to the first.
    pub fn socket_of(&self, processor: usize) -> usize {
        self.sockets.get(processor).copied().unwrap_or(0)
    }
}

impl Topology for OsTopology {
    fn socket_count(&self) -> usize {
        self.socket_count
    }

    fn current_socket(&self) -> usize {
        current_processor().map_or(0, |processor| self.socket_of(processor))
    }
}

/// The topology of this machine, read once for the process; takes no room where it is kept.
#[derive(Debug, Default, Clone, Copy)]
pub struct MachineTopology;

impl MachineTopology {
    fn get() -> &'static OsTopology {
        static MACHINE: OnceLock<OsTopology> = OnceLock::new();
        MACHINE.get_or_init(OsTopology::default)
    }
}

impl Topology for MachineTopology {
    fn socket_count(&self) -> usize {
        Self::get().socket_count()
    }

    fn current_socket(&self) -> usize {
        let machine = Self::get();
        if machine.socket_count() == 1 { 0 } else { machine.current_socket() }
    }
}

#[cfg(target_os = "linux")]
fn current_processor() -> Option<usize> {
    // SAFETY: the call has no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(not(target_os = "linux"))]
fn current_processor() -> Option<usize> {
    None
}

/// `cpu/cpuN/topology/physical_package_id`, as pairs of processor and package.
fn packages(folder: &Path) -> Option<Vec<(usize, usize)>> {
    let found: Vec<_> = numbered(folder, "cpu")?
        .into_iter()
        .filter_map(|processor| {
            let path = folder.join(format!("cpu{processor}/topology/physical_package_id"));
            Some((processor, fs::read_to_string(path).ok()?.trim().parse().ok()?))
        })
        .collect();
    (!found.is_empty()).then_some(found)
}

/// `node/nodeN/cpulist`, as pairs of processor and node.
fn nodes(folder: &Path) -> Option<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    for node in numbered(folder, "node")? {
        let list = fs::read_to_string(folder.join(format!("node{node}/cpulist"))).ok()?;
        found.extend(processors_of(&list)?.into_iter().map(|processor| (processor, node)));
    }
    (!found.is_empty()).then_some(found)
}

/// The numbers of the entries `prefixN` of a folder.
fn numbered(folder: &Path, prefix: &str) -> Option<Vec<usize>> {
    let entries = fs::read_dir(folder).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Some(names.filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect())
}

/// The processors of a list such as `0-3,8,10-11`.
fn processors_of(list: &str) -> Option<Vec<usize>> {
    let mut processors = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        processors.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(processors)
}

thread_local! {
    static VIRTUAL_SOCKET: Cell<usize> = const { Cell::new(0) };
}

/// Sockets that a test makes up; a thread says on which one it is.
#[derive(Debug, Clone, Copy)]
pub struct VirtualTopology {
    socket_count: usize,
}

impl VirtualTopology {
    /// So many sockets; threads begin on socket 0.
    ///
    /// # Panics
    /// If there are to be no sockets.
    pub fn new(socket_count: usize) -> Self {
        assert!(socket_count > 0, "a machine has at least one socket");
        VirtualTopology { socket_count }
    }

    /// Moves the calling thread to a socket.
    ///
    /// # Panics
    /// If there is no such socket.
    pub fn move_to(&self, socket: usize) {
        assert!(socket < self.socket_count, "socket {socket} of {}", self.socket_count);
        VIRTUAL_SOCKET.set(socket);
    }
}

impl Topology for VirtualTopology {
    fn socket_count(&self) -> usize {
        self.socket_count
    }

    fn current_socket(&self) -> usize {
        VIRTUAL_SOCKET.get().min(self.socket_count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn packages_are_numbered_from_zero_in_their_order() {
        let root = tempfile::tempdir().unwrap();
        for (processor, package) in [(0, 3), (1, 8), (2, 3), (3, 8)] {
            let path = format!("cpu/cpu{processor}/topology/physical_package_id");
            write(root.path(), &path, &format!("{package}\n"));
        }
        write(root.path(), "cpu/cpufreq/policy", "not a processor");
        let topology = OsTopology::read_from(root.path());
        assert_eq!(topology.socket_count(), 2);
        assert_eq!([0, 1, 2, 3, 99].map(|processor| topology.socket_of(processor)), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn memory_nodes_stand_in_where_packages_are_not_told() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "node/node0/cpulist", "0-1,4\n");
        write(root.path(), "node/node2/cpulist", "2-3,5-6\n");
        write(root.path(), "node/node3/cpulist", "\n");
        let topology = OsTopology::read_from(root.path());
        assert_eq!(topology.socket_count(), 2);
        let sockets: Vec<_> = (0..7).map(|processor| topology.socket_of(processor)).collect();
        assert_eq!(sockets, [0, 0, 1, 1, 0, 1, 1]);
    }

    #[test]
    fn a_machine_that_tells_nothing_has_one_socket() {
        let root = tempfile::tempdir().unwrap();
        let topology = OsTopology::read_from(&root.path().join("missing"));
        assert_eq!((topology.socket_count(), topology.socket_of(7)), (1, 0));
        write(root.path(), "node/node0/cpulist", "0-x\n");
        assert_eq!(OsTopology::read_from(root.path()).socket_count(), 1);
    }

    #[test]
    fn the_machine_has_sockets_and_this_thread_is_on_one() {
        let topology = OsTopology::default();
        assert!(topology.current_socket() < topology.socket_count());
        assert_eq!(MachineTopology.socket_count(), topology.socket_count());
        assert!(MachineTopology.current_socket() < topology.socket_count());
    }
}
