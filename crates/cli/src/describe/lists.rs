//! Lists of objects other than relations: schemas, functions, types, domains, extensions, databases and their like.
//!
//! Each is a row of [`LISTS`]: the query that psql sends, in parts, so that `S`, `+` and a pattern can be put into it.
use super::ask::Ask;
use super::pattern::{Columns, Pattern, visible};
use crate::shell::{Failure, Shell};

/// A list as the parts of its query.
struct List {
    command: &'static str,
    title: &'static str,
    columns: &'static [&'static str],
    /// The columns of `+`.
    more: &'static [&'static str],
    from: &'static str,
    /// Tables that only the columns of `+` need.
    more_from: &'static str,
    /// A condition that always holds.
    always: &'static str,
    /// A condition that leaves objects of the system out.
    without_system: &'static str,
    pattern: Columns<'static>,
    order: &'static str,
}

/// A schema that is none of the system's.
const OF_USERS: &str = "n.nspname <> 'pg_catalog'\n      AND n.nspname <> 'information_schema'";

const fn named(schema: &'static str, name: &'static str, is_visible: &'static str) -> Columns<'static> {
    Columns { schema: Some(schema), name, other: None, is_visible: Some(is_visible) }
}

const fn alone(name: &'static str) -> Columns<'static> {
    Columns { schema: None, name, other: None, is_visible: None }
}

const FUNCTIONS: List = List {
    command: "df",
    title: "List of functions",
    columns: &[
        "n.nspname as \"Schema\"",
        "p.proname as \"Name\"",
        "pg_catalog.pg_get_function_result(p.oid) as \"Result data type\"",
        "pg_catalog.pg_get_function_arguments(p.oid) as \"Argument data types\"",
        "CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END as \"Type\"",
    ],
    more: &[
        "CASE WHEN p.provolatile = 'i' THEN 'immutable' WHEN p.provolatile = 's' THEN 'stable' WHEN p.provolatile = 'v' THEN 'volatile' \
         END as \"Volatility\"",
        "CASE WHEN p.proparallel = 'r' THEN 'restricted' WHEN p.proparallel = 's' THEN 'safe' WHEN p.proparallel = 'u' THEN 'unsafe' \
         END as \"Parallel\"",
        "pg_catalog.pg_get_userbyid(p.proowner) as \"Owner\"",
        "CASE WHEN prosecdef THEN 'definer' ELSE 'invoker' END AS \"Security\"",
        "pg_catalog.array_to_string(p.proacl, E'\\n') AS \"Access privileges\"",
        "l.lanname as \"Language\"",
        "COALESCE(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as \"Source code\"",
        "pg_catalog.obj_description(p.oid, 'pg_proc') as \"Description\"",
    ],
    from: "pg_catalog.pg_proc p\n     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace",
    more_from: "\n     LEFT JOIN pg_catalog.pg_language l ON l.oid = p.prolang",
    always: "true",
    without_system: OF_USERS,
    pattern: named("n.nspname", "p.proname", "pg_catalog.pg_function_is_visible(p.oid)"),
    order: "1, 2, 4",
};

/// The lists, by the command that shows them.
const LISTS: [List; 18] = [
    FUNCTIONS,
    List { command: "dfn", always: "p.prokind NOT IN ('a', 'w', 'p')", ..FUNCTIONS },
    List { command: "dfa", always: "p.prokind = 'a'", ..FUNCTIONS },
    List { command: "dfw", always: "p.prokind = 'w'", ..FUNCTIONS },
    List {
        command: "da",
        title: "List of aggregate functions",
        columns: &[
            "n.nspname as \"Schema\"",
            "p.proname AS \"Name\"",
            "pg_catalog.format_type(p.prorettype, NULL) AS \"Result data type\"",
            "CASE WHEN p.pronargs = 0 THEN CAST('*' AS pg_catalog.text) ELSE pg_catalog.pg_get_function_arguments(p.oid) END \
             AS \"Argument data types\"",
            "pg_catalog.obj_description(p.oid, 'pg_proc') as \"Description\"",
        ],
        more: &[],
        more_from: "",
        always: "p.prokind = 'a'",
        ..FUNCTIONS
    },
    List {
        command: "dn",
        title: "List of schemas",
        columns: &["n.nspname AS \"Name\"", "pg_catalog.pg_get_userbyid(n.nspowner) AS \"Owner\""],
        more: &[
            "pg_catalog.array_to_string(n.nspacl, E'\\n') AS \"Access privileges\"",
            "pg_catalog.obj_description(n.oid, 'pg_namespace') AS \"Description\"",
        ],
        from: "pg_catalog.pg_namespace n",
        more_from: "",
        always: "true",
        without_system: "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'",
        pattern: alone("n.nspname"),
        order: "1",
    },
    List {
        command: "dT",
        title: "List of data types",
        columns: &["n.nspname as \"Schema\"", "pg_catalog.format_type(t.oid, NULL) AS \"Name\""],
        more: &[
            "t.typname AS \"Internal name\"",
            "CASE WHEN t.typrelid != 0 THEN CAST('tuple' AS pg_catalog.text) WHEN t.typlen < 0 THEN CAST('var' AS pg_catalog.text) \
             ELSE CAST(t.typlen AS pg_catalog.text) END AS \"Size\"",
            "pg_catalog.array_to_string(ARRAY(SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid \
             ORDER BY e.enumsortorder), E'\\n') AS \"Elements\"",
            "pg_catalog.pg_get_userbyid(t.typowner) AS \"Owner\"",
            "pg_catalog.array_to_string(t.typacl, E'\\n') AS \"Access privileges\"",
        ],
        from: "pg_catalog.pg_type t\n     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace",
        more_from: "",
        always: "(t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid))\n  \
                 AND NOT EXISTS(SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid)",
        without_system: OF_USERS,
        pattern: Columns {
            schema: Some("n.nspname"),
            name: "t.typname",
            other: Some("pg_catalog.format_type(t.oid, NULL)"),
            is_visible: Some("pg_catalog.pg_type_is_visible(t.oid)"),
        },
        order: "1, 2",
    },
    List {
        command: "dD",
        title: "List of domains",
        columns: &[
            "n.nspname as \"Schema\"",
            "t.typname as \"Name\"",
            "pg_catalog.format_type(t.typbasetype, t.typtypmod) as \"Type\"",
            "(SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type bt WHERE c.oid = t.typcollation \
             AND bt.oid = t.typbasetype AND t.typcollation <> bt.typcollation) as \"Collation\"",
            "CASE WHEN t.typnotnull THEN 'not null' END as \"Nullable\"",
            "t.typdefault as \"Default\"",
            "pg_catalog.array_to_string(ARRAY(SELECT pg_catalog.pg_get_constraintdef(r.oid, true) \
             FROM pg_catalog.pg_constraint r WHERE t.oid = r.contypid), ' ') as \"Check\"",
        ],
        more: &[
            "pg_catalog.array_to_string(t.typacl, E'\\n') AS \"Access privileges\"",
            "d.description as \"Description\"",
        ],
        from: "pg_catalog.pg_type t\n     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace",
        more_from: "\n     LEFT JOIN pg_catalog.pg_description d ON d.classoid = t.tableoid AND d.objoid = t.oid AND d.objsubid = 0",
        always: "t.typtype = 'd'",
        without_system: OF_USERS,
        pattern: named("n.nspname", "t.typname", "pg_catalog.pg_type_is_visible(t.oid)"),
        order: "1, 2",
    },
    List {
        command: "dx",
        title: "List of installed extensions",
        columns: &[
            "e.extname AS \"Name\"",
            "e.extversion AS \"Version\"",
            "n.nspname AS \"Schema\"",
            "c.description AS \"Description\"",
        ],
        more: &[],
        from: "pg_catalog.pg_extension e LEFT JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
               LEFT JOIN pg_catalog.pg_description c ON c.objoid = e.oid AND c.classoid = 'pg_catalog.pg_extension'::pg_catalog.regclass",
        more_from: "",
        always: "true",
        without_system: "true",
        pattern: alone("e.extname"),
        order: "1",
    },
    List {
        command: "l",
        title: "List of databases",
        columns: &[
            "d.datname as \"Name\"",
            "pg_catalog.pg_get_userbyid(d.datdba) as \"Owner\"",
            "pg_catalog.pg_encoding_to_char(d.encoding) as \"Encoding\"",
            "d.datcollate as \"Collate\"",
            "d.datctype as \"Ctype\"",
            "d.daticulocale as \"ICU Locale\"",
            "CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS \"Locale Provider\"",
            "pg_catalog.array_to_string(d.datacl, E'\\n') AS \"Access privileges\"",
        ],
        more: &[
            "CASE WHEN pg_catalog.has_database_privilege(d.datname, 'CONNECT') \
             THEN pg_catalog.pg_size_pretty(pg_catalog.pg_database_size(d.datname)) ELSE 'No Access' END as \"Size\"",
            "t.spcname as \"Tablespace\"",
            "pg_catalog.shobj_description(d.oid, 'pg_database') as \"Description\"",
        ],
        from: "pg_catalog.pg_database d",
        more_from: "\n  JOIN pg_catalog.pg_tablespace t on d.dattablespace = t.oid",
        always: "true",
        without_system: "true",
        pattern: alone("d.datname"),
        order: "1",
    },
    List {
        command: "dp",
        title: "Access privileges",
        columns: &[
            "n.nspname as \"Schema\"",
            "c.relname as \"Name\"",
            "CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' END \
             as \"Type\"",
            "pg_catalog.array_to_string(c.relacl, E'\\n') AS \"Access privileges\"",
            "pg_catalog.array_to_string(ARRAY(SELECT attname || E':\\n  ' || pg_catalog.array_to_string(attacl, E'\\n  ') \
             FROM pg_catalog.pg_attribute a WHERE attrelid = c.oid AND NOT attisdropped AND attacl IS NOT NULL), E'\\n') \
             AS \"Column privileges\"",
            "'' AS \"Policies\"",
        ],
        more: &[],
        from: "pg_catalog.pg_class c\n     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace",
        more_from: "",
        always: "c.relkind IN ('r','v','m','S','f','p')",
        without_system: "n.nspname !~ '^pg_'",
        pattern: named("n.nspname", "c.relname", "pg_catalog.pg_table_is_visible(c.oid)"),
        order: "1, 2",
    },
    List {
        command: "db",
        title: "List of tablespaces",
        columns: &[
            "spcname AS \"Name\"",
            "pg_catalog.pg_get_userbyid(spcowner) AS \"Owner\"",
            "pg_catalog.pg_tablespace_location(oid) AS \"Location\"",
        ],
        more: &[],
        from: "pg_catalog.pg_tablespace",
        more_from: "",
        always: "true",
        without_system: "true",
        pattern: alone("spcname"),
        order: "1",
    },
    List {
        command: "dA",
        title: "List of access methods",
        columns: &["amname AS \"Name\"", "CASE amtype WHEN 'i' THEN 'Index' WHEN 't' THEN 'Table' END AS \"Type\""],
        more: &["amhandler AS \"Handler\"", "pg_catalog.obj_description(oid, 'pg_am') AS \"Description\""],
        from: "pg_catalog.pg_am",
        more_from: "",
        always: "true",
        without_system: "true",
        pattern: alone("amname"),
        order: "1",
    },
    List {
        command: "dO",
        title: "List of collations",
        columns: &[
            "n.nspname AS \"Schema\"",
            "c.collname AS \"Name\"",
            "c.collcollate AS \"Collate\"",
            "c.collctype AS \"Ctype\"",
            "c.colliculocale AS \"ICU Locale\"",
            "CASE c.collprovider WHEN 'd' THEN 'default' WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS \"Provider\"",
            "CASE WHEN c.collisdeterministic THEN 'yes' ELSE 'no' END AS \"Deterministic?\"",
        ],
        more: &["pg_catalog.obj_description(c.oid, 'pg_collation') AS \"Description\""],
        from: "pg_catalog.pg_collation c JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace",
        more_from: "",
        always: "true",
        without_system: OF_USERS,
        pattern: named("n.nspname", "c.collname", "pg_catalog.pg_collation_is_visible(c.oid)"),
        order: "1, 2",
    },
    List {
        command: "dL",
        title: "List of languages",
        columns: &[
            "l.lanname AS \"Name\"",
            "pg_catalog.pg_get_userbyid(l.lanowner) as \"Owner\"",
            "l.lanpltrusted AS \"Trusted\"",
            "pg_catalog.obj_description(l.oid, 'pg_language') AS \"Description\"",
        ],
        more: &[],
        from: "pg_catalog.pg_language l",
        more_from: "",
        always: "true",
        without_system: "l.lanplcallfoid != 0",
        pattern: alone("l.lanname"),
        order: "1",
    },
    List {
        command: "dconfig",
        title: "List of configuration parameters",
        columns: &["s.name AS \"Parameter\"", "pg_catalog.current_setting(s.name) AS \"Value\""],
        more: &["s.vartype AS \"Type\"", "s.context AS \"Context\""],
        from: "pg_catalog.pg_settings s",
        more_from: "",
        always: "true",
        without_system: "s.source <> 'default' AND s.setting IS DISTINCT FROM s.boot_val",
        pattern: alone("pg_catalog.lower(s.name)"),
        order: "1",
    },
    List {
        command: "drds",
        title: "List of settings",
        columns: &[
            "r.rolname AS \"Role\"",
            "d.datname AS \"Database\"",
            "pg_catalog.array_to_string(s.setconfig, E'\\n') AS \"Settings\"",
        ],
        more: &[],
        from: "pg_catalog.pg_db_role_setting s\nLEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase\n\
               LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole",
        more_from: "",
        always: "true",
        without_system: "true",
        pattern: alone("r.rolname"),
        order: "1, 2",
    },
    List {
        command: "dd",
        title: "Object descriptions",
        columns: &[
            "n.nspname AS \"Schema\"",
            "r.conname AS \"Name\"",
            "'table constraint' AS \"Object\"",
            "d.description AS \"Description\"",
        ],
        more: &[],
        from: "pg_catalog.pg_constraint r\n  JOIN pg_catalog.pg_class c ON c.oid = r.conrelid\n  \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace\n  \
               JOIN pg_catalog.pg_description d ON d.objoid = r.oid AND d.objsubid = 0",
        more_from: "",
        always: "true",
        without_system: OF_USERS,
        pattern: named("n.nspname", "r.conname", "pg_catalog.pg_table_is_visible(c.oid)"),
        order: "1, 2, 3",
    },
];

/// Commands of psql for what there is none of here, and what that is.
const MISSING: [(&str, &str); 14] = [
    ("dc", "conversions"),
    ("dC", "casts of its own"),
    ("ddp", "default privileges"),
    ("des", "foreign servers"),
    ("det", "foreign tables"),
    ("dew", "foreign-data wrappers"),
    ("dF", "text search configurations"),
    ("dl", "large objects"),
    ("do", "operators of its own"),
    ("dP", "partitioned tables"),
    ("dRp", "publications"),
    ("dRs", "subscriptions"),
    ("dX", "extended statistics"),
    ("dy", "event triggers"),
];

/// Whether a command shows a list.
pub(super) fn has(command: &str) -> bool {
    LISTS.iter().any(|list| list.command == command)
}

/// What a command of psql would list that is not here.
pub(super) fn missing(command: &str) -> Option<&'static str> {
    MISSING.iter().find(|(known, _)| *known == command).map(|(_, objects)| *objects)
}

impl Shell {
    /// Shows the list of a command.
    pub(super) fn list(&mut self, ask: &Ask, command: &str) -> Result<(), Failure> {
        let Some(list) = LISTS.iter().find(|list| list.command == command) else { return Ok(()) };
        let query = list.query(ask)?;
        let is_default = command == "dconfig" && ask.pattern.is_none();
        let title = if is_default { "List of non-default configuration parameters" } else { list.title };
        let nothing = (command == "drds").then_some("Did not find any settings.");
        self.show(title, &query, nothing)
    }
}

impl List {
    fn query(&self, ask: &Ask) -> Result<String, String> {
        let mut columns = self.columns.to_vec();
        let mut from = self.from.to_owned();
        if ask.is_verbose {
            columns.extend(self.more);
            from.push_str(self.more_from);
        }
        // The description of a type is told in either form, and comes last.
        if self.command == "dT" {
            columns.push("pg_catalog.obj_description(t.oid, 'pg_type') as \"Description\"");
        }
        let mut conditions = self.always.to_owned();
        if !ask.with_system && ask.pattern.is_none() {
            conditions.push_str(&format!("\n      AND {}", self.without_system));
        }
        conditions.push_str(&match &ask.pattern {
            Some(pattern) => Pattern::read(pattern)?.conditions(self.pattern),
            None => visible(self.pattern),
        });
        let columns = columns.join(",\n  ");
        Ok(format!("SELECT {columns}\nFROM {from}\nWHERE {conditions}\nORDER BY {};", self.order))
    }
}
