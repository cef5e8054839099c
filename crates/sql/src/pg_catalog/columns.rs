//! The columns of the relations of the catalog, and of those of `information_schema`.
//!
//! A relation is a name and a list of columns with the letters of their types: `n` is a number, `t` a text, `c` a letter, `b` a
//! truth, `r` a real number, `i` an interval, `m` a moment, `v` a vector of numbers, `o` a vector of numbers of
//! objects, `a` an array of numbers, `l` an array of texts.
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};

use crate::values::types::{COUNT, OBJECT, OBJECT_VECTOR, SHORT_VECTOR, TYPE_KEY, of_catalog};

/// Relations that have rows.
pub(super) const RELATIONS: [(&str, &str); 36] = [
    ("pg_range", "rngtypid n rngsubtype n rngmultitypid n rngcollation n rngsubopc n rngcanonical t rngsubdiff t"),
    ("pg_timezone_names", "name t abbrev t utc_offset i is_dst b"),
    ("pg_enum", "oid n enumtypid n enumsortorder n enumlabel t"),
    ("pg_attrdef", "oid n adrelid n adnum n adbin t"),
    ("pg_depend", "classid n objid n objsubid n refclassid n refobjid n refobjsubid n deptype t"),
    ("pg_am", "oid n amname t amhandler t amtype t"),
    (
        "pg_attribute",
        "attrelid n attname t atttypid n attlen n attnum n attcacheoff n atttypmod n attndims n attbyval b attalign t \
         attstorage t attcompression t attnotnull b atthasdef b atthasmissing b attidentity t attgenerated t \
         attisdropped b attislocal b attinhcount n attcollation n attstattarget n attacl l attoptions l attfdwoptions l \
         attmissingval l",
    ),
    (
        "pg_class",
        "oid n relname t relnamespace n reltype n reloftype n relowner n relam n relfilenode n reltablespace n \
         relpages n reltuples n relallvisible n reltoastrelid n relhasindex b relisshared b relpersistence t relkind t \
         relnatts n relchecks n relhasrules b relhastriggers b relhassubclass b relrowsecurity b relforcerowsecurity b \
         relispopulated b relreplident t relispartition b relrewrite n relfrozenxid n relminmxid n relacl l reloptions l \
         relpartbound t",
    ),
    (
        "pg_constraint",
        "oid n conname t connamespace n contype t condeferrable b condeferred b convalidated b conrelid n contypid n \
         conindid n conparentid n confrelid n confupdtype t confdeltype t confmatchtype t conislocal b coninhcount n \
         connoinherit b conkey a confkey a conpfeqop a conppeqop a conffeqop a confdelsetcols a conexclop a conbin t",
    ),
    (
        "pg_database",
        "oid n datname t datdba n encoding n datlocprovider t datistemplate b datallowconn b datconnlimit n \
         datfrozenxid n datminmxid n dattablespace n datcollate t datctype t daticulocale t daticurules t datcollversion t \
         datacl l",
    ),
    (
        "pg_stat_activity",
        "datid n datname t pid n leader_pid n usesysid n usename t application_name t client_addr t client_hostname t \
         client_port n backend_start m xact_start m query_start m state_change m wait_event_type t wait_event t state t \
         backend_xid n backend_xmin n query_id n query t backend_type t",
    ),
    ("pg_cursors", "name t statement t is_holdable b is_binary b is_scrollable b creation_time m"),
    (
        "pg_prepared_statements",
        "name t statement t prepare_time m parameter_types l from_sql b generic_plans n custom_plans n",
    ),
    ("pg_db_role_setting", "setdatabase n setrole n setconfig l"),
    ("pg_available_extensions", "name t default_version t installed_version t comment t"),
    ("pg_extension", "oid n extname t extowner n extnamespace n extrelocatable b extversion t"),
    (
        "pg_index",
        "indexrelid n indrelid n indnatts n indnkeyatts n indisunique b indnullsnotdistinct b indisprimary b \
         indisexclusion b indimmediate b indisclustered b indisvalid b indcheckxmin b indisready b indislive b \
         indisreplident b indkey v indcollation o indclass o indoption v indexprs t indpred t",
    ),
    ("pg_description", "objoid n classoid n objsubid n description t"),
    ("pg_indexes", "schemaname t tablename t indexname t tablespace t indexdef t"),
    ("pg_matviews", "schemaname t matviewname t matviewowner t tablespace t hasindexes b ispopulated b definition t"),
    ("pg_namespace", "oid n nspname t nspowner n nspacl l"),
    (
        "pg_language",
        "oid n lanname t lanowner n lanispl b lanpltrusted b lanplcallfoid n laninline n lanvalidator n lanacl l",
    ),
    (
        "pg_proc",
        "oid n proname t pronamespace n proowner n prolang n procost r prorows r provariadic n prosupport t prokind t \
         prosecdef b proleakproof b proisstrict b proretset b provolatile t proparallel t pronargs n pronargdefaults n \
         prorettype n proargtypes t proallargtypes l proargmodes l proargnames l proargdefaults t protrftypes l prosrc t \
         probin t prosqlbody t proconfig l proacl l",
    ),
    (
        "pg_roles",
        "rolname t rolsuper b rolinherit b rolcreaterole b rolcreatedb b rolcanlogin b rolreplication b rolconnlimit n \
         rolpassword t rolvaliduntil t rolbypassrls b rolconfig l oid n",
    ),
    ("pg_sequence", "seqrelid n seqtypid n seqstart n seqincrement n seqmax n seqmin n seqcache n seqcycle b"),
    (
        "pg_sequences",
        "schemaname t sequencename t sequenceowner t data_type t start_value n min_value n max_value n increment_by n \
         cycle b cache_size n last_value n",
    ),
    (
        "pg_settings",
        "name t setting t unit t category t short_desc t extra_desc t context t vartype t source t min_val t max_val t \
         enumvals l boot_val t reset_val t sourcefile t sourceline n pending_restart b",
    ),
    (
        "pg_stats",
        "schemaname t tablename t attname t inherited b null_frac r avg_width n n_distinct r most_common_vals l \
         most_common_freqs l histogram_bounds l correlation r most_common_elems l most_common_elem_freqs l \
         elem_count_histogram l",
    ),
    (
        "pg_tables",
        "schemaname t tablename t tableowner t tablespace t hasindexes b hasrules b hastriggers b rowsecurity b",
    ),
    ("pg_tablespace", "oid n spcname t spcowner n spcacl l spcoptions l"),
    (
        "pg_type",
        "oid n typname t typnamespace n typowner n typlen n typbyval b typtype c typcategory t typispreferred b \
         typisdefined b typdelim c typrelid n typsubscript t typelem n typarray n typinput t typoutput t typreceive t \
         typsend t typmodin t typmodout t typanalyze t typalign t typstorage t typnotnull b typbasetype n typtypmod n \
         typndims n typcollation n typdefaultbin t typdefault t typacl l",
    ),
    (
        "pg_user",
        "usename t usesysid n usecreatedb b usesuper b userepl b usebypassrls b passwd t valuntil t useconfig l",
    ),
    (
        "pg_collation",
        "oid n collname t collnamespace n collowner n collprovider t collisdeterministic b collencoding n collcollate t \
         collctype t colliculocale t collversion t",
    ),
    (
        "pg_opclass",
        "oid n opcmethod n opcname t opcnamespace n opcowner n opcfamily n opcintype n opcdefault b opckeytype n",
    ),
    ("pg_opfamily", "oid n opfmethod n opfname t opfnamespace n opfowner n"),
    ("pg_views", "schemaname t viewname t viewowner t definition t"),
];

/// Relations that PostgreSQL has and that never have a row here.
pub(super) const EMPTY: [(&str, &str); 52] = [
    ("pg_aggregate", "aggfnoid n aggkind t"),
    ("pg_auth_members", "oid n roleid n member n grantor n admin_option b"),
    ("pg_cast", "oid n castsource n casttarget n castfunc n castcontext t castmethod t"),
    (
        "pg_conversion",
        "oid n conname t connamespace n conowner n conforencoding n contoencoding n conproc t condefault b",
    ),
    ("pg_default_acl", "oid n defaclrole n defaclnamespace n defaclobjtype t defaclacl l"),
    ("pg_event_trigger", "oid n evtname t evtevent t evtowner n evtfoid n evtenabled t evttags l"),
    ("pg_foreign_data_wrapper", "oid n fdwname t fdwowner n fdwhandler n fdwvalidator n fdwacl l fdwoptions l"),
    ("pg_foreign_server", "oid n srvname t srvowner n srvfdw n srvtype t srvversion t srvacl l srvoptions l"),
    ("pg_foreign_table", "ftrelid n ftserver n ftoptions l"),
    ("pg_inherits", "inhrelid n inhparent n inhseqno n inhdetachpending b"),
    ("pg_operator", "oid n oprname t oprnamespace n oprowner n oprkind t oprleft n oprright n oprresult n"),
    ("pg_partitioned_table", "partrelid n partstrat t partnatts n partdefid n partattrs v partexprs t"),
    ("pg_policies", "schemaname t tablename t policyname t permissive t roles l cmd t qual t with_check t"),
    ("pg_policy", "oid n polname t polrelid n polcmd t polpermissive b polroles a polqual t polwithcheck t"),
    ("pg_prepared_xacts", "transaction n gid t prepared t owner t database t"),
    ("pg_publication", "oid n pubname t pubowner n puballtables b pubinsert b pubupdate b pubdelete b pubtruncate b"),
    ("pg_publication_namespace", "oid n pnpubid n pnnspid n"),
    ("pg_publication_rel", "oid n prpubid n prrelid n prqual t prattrs v"),
    ("pg_rewrite", "oid n rulename t ev_class n ev_type t ev_enabled t is_instead b ev_qual t ev_action t"),
    ("pg_rules", "schemaname t tablename t rulename t definition t"),
    ("pg_shdescription", "objoid n classoid n description t"),
    ("pg_statistic_ext", "oid n stxrelid n stxname t stxnamespace n stxowner n stxkeys v stxkind l"),
    ("pg_subscription", "oid n subdbid n subname t subowner n subenabled b subconninfo t subslotname t"),
    ("pg_trigger", "oid n tgrelid n tgparentid n tgname t tgfoid n tgtype n tgenabled t tgisinternal b tgconstraint n"),
    ("pg_ts_config", "oid n cfgname t cfgnamespace n cfgowner n cfgparser n"),
    ("pg_ts_dict", "oid n dictname t dictnamespace n dictowner n dicttemplate n dictinitoption t"),
    ("pg_ts_parser", "oid n prsname t prsnamespace n"),
    ("pg_ts_template", "oid n tmplname t tmplnamespace n"),
    ("pg_user_mapping", "oid n umuser n umserver n umoptions l"),
    ("pg_seclabels", "objoid n classoid n objsubid n provider t label t"),
    ("pg_group", "groname t grosysid n grolist l"),
    ("pg_largeobject", "loid n pageno n data t"),
    ("pg_largeobject_metadata", "oid n lomowner n lomacl l"),
    (
        "pg_amop",
        "oid n amopfamily n amoplefttype n amoprighttype n amopstrategy n amoppurpose t amopopr n amopmethod n \
         amopsortfamily n",
    ),
    ("pg_amproc", "oid n amprocfamily n amproclefttype n amprocrighttype n amprocnum n amproc t"),
    ("pg_init_privs", "objoid n classoid n objsubid n privtype t initprivs l"),
    ("pg_seclabel", "objoid n classoid n objsubid n provider t label t"),
    ("pg_shseclabel", "objoid n classoid n provider t label t"),
    ("pg_transform", "oid n trftype n trflang n trffromsql t trftosql t"),
    ("pg_statistic_ext_data", "stxoid n stxdinherit b stxdndistinct t stxddependencies t stxdmcv t stxdexpr l"),
    ("pg_publication_tables", "pubname t schemaname t tablename t attnames l rowfilter t"),
    ("pg_subscription_rel", "srsubid n srrelid n srsubstate t srsublsn t"),
    (
        "pg_replication_slots",
        "slot_name t plugin t slot_type t datoid n database t temporary b active b active_pid n xmin n catalog_xmin n \
         restart_lsn t confirmed_flush_lsn t wal_status t safe_wal_size n two_phase b",
    ),
    (
        "pg_stat_replication",
        "pid n usesysid n usename t application_name t client_addr t client_hostname t client_port n backend_start m \
         backend_xmin n state t sent_lsn t write_lsn t flush_lsn t replay_lsn t write_lag i flush_lag i replay_lag i \
         sync_priority n sync_state t reply_time m",
    ),
    ("pg_stat_subscription", "subid n subname t pid n relid n received_lsn t latest_end_lsn t"),
    ("pg_stat_ssl", "pid n ssl b version t cipher t bits n client_dn t client_serial n issuer_dn t"),
    ("pg_stat_user_functions", "funcid n schemaname t funcname t calls n total_time r self_time r"),
    (
        "pg_stat_progress_vacuum",
        "pid n datid n datname t relid n phase t heap_blks_total n heap_blks_scanned n heap_blks_vacuumed n \
         index_vacuum_count n max_dead_tuples n num_dead_tuples n",
    ),
    (
        "pg_stat_progress_create_index",
        "pid n datid n datname t relid n index_relid n command t phase t lockers_total n lockers_done n blocks_total n \
         blocks_done n tuples_total n tuples_done n",
    ),
    ("pg_hba_file_rules", "line_number n type t database l user_name l address t netmask t auth_method t error t"),
    ("pg_file_settings", "sourcefile t sourceline n seqno n name t setting t applied b error t"),
    ("pg_timezone_abbrevs", "abbrev t utc_offset i is_dst b"),
];

/// Those that programs ask for which watch a database.
pub(super) const MONITORING: [(&str, &str); 13] = [
    ("pg_stat_user_tables", TABLES_WATCHED),
    ("pg_stat_all_tables", TABLES_WATCHED),
    ("pg_statio_user_tables", BLOCKS_OF_TABLES),
    ("pg_statio_all_tables", BLOCKS_OF_TABLES),
    ("pg_stat_user_indexes", INDEXES_WATCHED),
    ("pg_stat_all_indexes", INDEXES_WATCHED),
    ("pg_statio_user_indexes", BLOCKS_OF_INDEXES),
    ("pg_statio_all_indexes", BLOCKS_OF_INDEXES),
    (
        "pg_stat_database",
        "datid n datname t numbackends n xact_commit n xact_rollback n blks_read n blks_hit n tup_returned n tup_fetched n \
         tup_inserted n tup_updated n tup_deleted n conflicts n temp_files n temp_bytes n deadlocks n checksum_failures n \
         checksum_last_failure m blk_read_time r blk_write_time r session_time r active_time r \
         idle_in_transaction_time r sessions n sessions_abandoned n sessions_fatal n sessions_killed n stats_reset m",
    ),
    (
        "pg_locks",
        "locktype t database n relation n page n tuple n virtualxid t transactionid n classid n objid n objsubid n \
         virtualtransaction t pid n mode t granted b fastpath b waitstart m",
    ),
    (
        "pg_stat_bgwriter",
        "checkpoints_timed n checkpoints_req n checkpoint_write_time r checkpoint_sync_time r buffers_checkpoint n \
         buffers_clean n maxwritten_clean n buffers_backend n buffers_backend_fsync n buffers_alloc n stats_reset m",
    ),
    (
        "pg_stat_archiver",
        "archived_count n last_archived_wal t last_archived_time m failed_count n last_failed_wal t last_failed_time m \
         stats_reset m",
    ),
    (
        "pg_shadow",
        "usename t usesysid n usecreatedb b usesuper b userepl b usebypassrls b passwd t valuntil t useconfig l",
    ),
];

const TABLES_WATCHED: &str = "\
    relid n schemaname t relname t seq_scan n seq_tup_read n idx_scan n idx_tup_fetch n n_tup_ins n n_tup_upd n n_tup_del \
    n n_tup_hot_upd n n_live_tup n n_dead_tup n n_mod_since_analyze n n_ins_since_vacuum n last_vacuum m last_autovacuum m \
    last_analyze m last_autoanalyze m vacuum_count n autovacuum_count n analyze_count n autoanalyze_count n";
const BLOCKS_OF_TABLES: &str = "\
    relid n schemaname t relname t heap_blks_read n heap_blks_hit n idx_blks_read n idx_blks_hit n toast_blks_read n \
    toast_blks_hit n tidx_blks_read n tidx_blks_hit n";
const INDEXES_WATCHED: &str =
    "relid n indexrelid n schemaname t relname t indexrelname t idx_scan n idx_tup_read n idx_tup_fetch n";
const BLOCKS_OF_INDEXES: &str =
    "relid n indexrelid n schemaname t relname t indexrelname t idx_blks_read n idx_blks_hit n";

/// The relations of `information_schema`.
pub(super) const INFORMATION: [(&str, &str); 15] = [
    (
        "domain_constraints",
        "constraint_catalog t constraint_schema t constraint_name t domain_catalog t domain_schema t domain_name t \
         is_deferrable t initially_deferred t",
    ),
    (
        "domains",
        "domain_catalog t domain_schema t domain_name t data_type t character_maximum_length n character_octet_length n \
         character_set_catalog t character_set_schema t character_set_name t collation_catalog t collation_schema t \
         collation_name t numeric_precision n numeric_precision_radix n numeric_scale n datetime_precision n \
         interval_type t interval_precision n domain_default t udt_catalog t udt_schema t udt_name t scope_catalog t \
         scope_schema t scope_name t maximum_cardinality n dtd_identifier t",
    ),
    ("check_constraints", "constraint_catalog t constraint_schema t constraint_name t check_clause t"),
    (
        "columns",
        "table_catalog t table_schema t table_name t column_name t ordinal_position n column_default t is_nullable t \
         data_type t character_maximum_length n character_octet_length n numeric_precision n numeric_precision_radix n \
         numeric_scale n datetime_precision n interval_type t interval_precision n character_set_catalog t \
         character_set_schema t character_set_name t collation_catalog t collation_schema t collation_name t \
         domain_catalog t domain_schema t domain_name t udt_catalog t udt_schema t udt_name t scope_catalog t \
         scope_schema t scope_name t maximum_cardinality n dtd_identifier t is_self_referencing t is_identity t \
         identity_generation t identity_start t identity_increment t identity_maximum t identity_minimum t \
         identity_cycle t is_generated t generation_expression t is_updatable t",
    ),
    (
        "constraint_column_usage",
        "table_catalog t table_schema t table_name t column_name t constraint_catalog t constraint_schema t \
         constraint_name t",
    ),
    (
        "key_column_usage",
        "constraint_catalog t constraint_schema t constraint_name t table_catalog t table_schema t table_name t \
         column_name t ordinal_position n position_in_unique_constraint n",
    ),
    (
        "referential_constraints",
        "constraint_catalog t constraint_schema t constraint_name t unique_constraint_catalog t \
         unique_constraint_schema t unique_constraint_name t match_option t update_rule t delete_rule t",
    ),
    (
        "routines",
        "specific_catalog t specific_schema t specific_name t routine_catalog t routine_schema t routine_name t \
         routine_type t data_type t type_udt_catalog t type_udt_schema t type_udt_name t dtd_identifier t routine_body t \
         routine_definition t external_name t external_language t parameter_style t is_deterministic t \
         sql_data_access t is_null_call t security_type t",
    ),
    (
        "parameters",
        "specific_catalog t specific_schema t specific_name t ordinal_position n parameter_mode t is_result t \
         as_locator t parameter_name t data_type t udt_catalog t udt_schema t udt_name t dtd_identifier t \
         parameter_default t",
    ),
    (
        "schemata",
        "catalog_name t schema_name t schema_owner t default_character_set_catalog t default_character_set_schema t \
         default_character_set_name t sql_path t",
    ),
    (
        "sequences",
        "sequence_catalog t sequence_schema t sequence_name t data_type t numeric_precision n numeric_precision_radix n \
         numeric_scale n start_value t minimum_value t maximum_value t increment t cycle_option t",
    ),
    (
        "table_constraints",
        "constraint_catalog t constraint_schema t constraint_name t table_catalog t table_schema t table_name t \
         constraint_type t is_deferrable t initially_deferred t enforced t nulls_distinct t",
    ),
    (
        "tables",
        "table_catalog t table_schema t table_name t table_type t self_referencing_column_name t reference_generation t \
         user_defined_type_catalog t user_defined_type_schema t user_defined_type_name t is_insertable_into t is_typed t \
         commit_action t",
    ),
    ("triggers", "trigger_catalog t trigger_schema t trigger_name t event_manipulation t event_object_table t"),
    (
        "views",
        "table_catalog t table_schema t table_name t view_definition t check_option t is_updatable t \
         is_insertable_into t is_trigger_updatable t is_trigger_deletable t is_trigger_insertable_into t",
    ),
];

/// The prefix of relations of `information_schema` where all relations have one schema.
pub(super) const INFORMATION_PREFIX: &str = "information_schema.";

/// The columns of a relation, if there is one of this name.
pub(super) fn columns(name: &str) -> Option<(&'static str, &'static str)> {
    let found = match name.strip_prefix(INFORMATION_PREFIX) {
        Some(name) => INFORMATION.iter().find(|known| known.0 == name),
        None => RELATIONS.iter().chain(&MONITORING).chain(&EMPTY).find(|known| known.0 == name),
    };
    found.copied()
}

/// The schema that such a list of columns means.
pub(super) fn schema(columns: &str) -> SchemaRef {
    let words: Vec<&str> = columns.split_whitespace().collect();
    let field = |pair: &[&str]| match pair[1] {
        "n" => numbers(pair[0]),
        "b" => Field::new(pair[0], DataType::Boolean, true),
        "r" => Field::new(pair[0], DataType::Float32, true),
        "m" => Field::new(pair[0], DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        "i" => Field::new(pair[0], DataType::Interval(IntervalUnit::MonthDayNano), true),
        "a" => Field::new(pair[0], DataType::new_list(DataType::Int16, true), true),
        "v" => Field::new(pair[0], DataType::new_list(DataType::Int16, true), true)
            .with_metadata(HashMap::from([(TYPE_KEY.to_owned(), SHORT_VECTOR.to_owned())])),
        "o" => Field::new(pair[0], DataType::new_list(DataType::Int64, true), true)
            .with_metadata(HashMap::from([(TYPE_KEY.to_owned(), OBJECT_VECTOR.to_owned())])),
        "c" => Field::new(pair[0], DataType::Utf8View, true)
            .with_metadata(HashMap::from([(TYPE_KEY.to_owned(), "char".to_owned())])),
        "l" => Field::new(pair[0], DataType::new_list(DataType::Utf8View, true), true),
        _ => Field::new(pair[0], DataType::Utf8View, true),
    };
    Arc::new(Schema::new(words.chunks_exact(2).map(field).collect::<Vec<_>>()))
}

/// A column of numbers, with the type that PostgreSQL tells of them.
fn numbers(name: &str) -> Field {
    /// Ends of the names of columns with numbers of objects, and names of others.
    const OBJECTS: [&str; 16] = [
        "id",
        "namespace",
        "owner",
        "relam",
        "reltype",
        "relfilenode",
        "tablespace",
        "typelem",
        "typarray",
        "typbasetype",
        "collation",
        "datdba",
        "method",
        "opcfamily",
        "intype",
        "keytype",
    ];
    /// Ends of the names of columns with counts.
    const COUNTS: [&str; 19] = [
        "_position",
        "_length",
        "_precision",
        "_radix",
        "_scale",
        "_cardinality",
        "in_unique_constraint",
        "attnum",
        "attlen",
        "typmod",
        "ndims",
        "attinhcount",
        "natts",
        "keyatts",
        "relchecks",
        "relpages",
        "objsubid",
        "typlen",
        "pid",
    ];
    let ends_in = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let field = Field::new(name, DataType::Int64, true);
    match name {
        _ if ends_in(&COUNTS) => of_catalog(field, COUNT),
        _ if ends_in(&["xid", "query_id", "transactionid"]) => field,
        _ if ends_in(&OBJECTS) => of_catalog(field, OBJECT),
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_has_columns_of_known_types() {
        for (name, columns) in RELATIONS.iter().chain(&MONITORING).chain(&EMPTY).chain(&INFORMATION) {
            let words: Vec<&str> = columns.split_whitespace().collect();
            assert!(words.len().is_multiple_of(2), "{name}");
            assert!(words.chunks(2).all(|pair| "ntcbaimvolr".contains(pair[1]) && pair[0].len() > 1), "{name}");
            let mut names: Vec<&str> = words.iter().step_by(2).copied().collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{name}");
        }
    }
}
