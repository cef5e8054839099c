//! The columns of the relations of the catalog, and of those of `information_schema`.
//!
//! A relation is a name and a list of columns with the letters of their types: `n` is a `bigint`, `d` an `integer`, `s` a `smallint`,
//! `e` the number of an object, `t` a text, `y` a `varchar`, `k` a name, `c` a letter (`"char"`), `b` a truth, `r` a `real`, `f` a
//! `double precision`, `i` an interval, `m` a moment, `v` a vector of numbers, `o` a vector of numbers of objects, `a` an array of
//! numbers, `l` an array of texts.
use std::sync::Arc;

use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};

use crate::values::types::{LETTER, NAME, OBJECT, OBJECT_VECTOR, SHORT_VECTOR, VARYING, of_catalog};

/// Relations that have rows.
pub(super) const RELATIONS: [(&str, &str); 37] = [
    ("pg_range", "rngtypid e rngsubtype e rngmultitypid e rngcollation e rngsubopc e rngcanonical t rngsubdiff t"),
    ("pg_timezone_names", "name t abbrev t utc_offset i is_dst b"),
    ("pg_enum", "oid e enumtypid e enumsortorder r enumlabel k"),
    ("pg_attrdef", "oid e adrelid e adnum s adbin t"),
    ("pg_depend", "classid e objid e objsubid d refclassid e refobjid e refobjsubid d deptype c"),
    ("pg_am", "oid e amname k amhandler t amtype c"),
    (
        "pg_attribute",
        "attrelid e attname k atttypid e attlen s attnum s attcacheoff d atttypmod d attndims d attbyval b attalign c \
         attstorage c attcompression c attnotnull b atthasdef b atthasmissing b attidentity c attgenerated c \
         attisdropped b attislocal b attinhcount d attcollation e attstattarget d attacl l attoptions l attfdwoptions l \
         attmissingval l",
    ),
    (
        "pg_class",
        "oid e relname k relnamespace e reltype e reloftype e relowner e relam e relfilenode e reltablespace e relpages d \
         reltuples r relallvisible d reltoastrelid e relhasindex b relisshared b relpersistence c relkind c relnatts s \
         relchecks s relhasrules b relhastriggers b relhassubclass b relrowsecurity b relforcerowsecurity b \
         relispopulated b relreplident c relispartition b relrewrite e relfrozenxid n relminmxid n relacl l reloptions l \
         relpartbound t",
    ),
    (
        "pg_constraint",
        "oid e conname k connamespace e contype c condeferrable b condeferred b convalidated b conrelid e contypid e \
         conindid e conparentid e confrelid e confupdtype c confdeltype c confmatchtype c conislocal b coninhcount d \
         connoinherit b conkey a confkey a conpfeqop a conppeqop a conffeqop a confdelsetcols a conexclop a conbin t",
    ),
    (
        "pg_database",
        "oid e datname k datdba e encoding d datlocprovider c datistemplate b datallowconn b datconnlimit d \
         datfrozenxid n datminmxid n dattablespace e datcollate t datctype t daticulocale t daticurules t \
         datcollversion t datacl l",
    ),
    (
        "pg_stat_activity",
        "datid e datname k pid d leader_pid d usesysid e usename k application_name t client_addr t client_hostname t \
         client_port d backend_start m xact_start m query_start m state_change m wait_event_type t wait_event t state t \
         backend_xid n backend_xmin n query_id n query t backend_type t",
    ),
    ("pg_cursors", "name t statement t is_holdable b is_binary b is_scrollable b creation_time m"),
    (
        "pg_prepared_statements",
        "name t statement t prepare_time m parameter_types l from_sql b generic_plans n custom_plans n",
    ),
    ("pg_db_role_setting", "setdatabase e setrole e setconfig l"),
    ("pg_available_extensions", "name k default_version t installed_version t comment t"),
    (
        "pg_extension",
        "oid e extname k extowner e extnamespace e extrelocatable b extversion t extconfig o extcondition l",
    ),
    (
        "pg_index",
        "indexrelid e indrelid e indnatts s indnkeyatts s indisunique b indnullsnotdistinct b indisprimary b \
         indisexclusion b indimmediate b indisclustered b indisvalid b indcheckxmin b indisready b indislive b \
         indisreplident b indkey v indcollation o indclass o indoption v indexprs t indpred t",
    ),
    ("pg_description", "objoid e classoid e objsubid d description t"),
    ("pg_indexes", "schemaname k tablename k indexname k tablespace k indexdef t"),
    ("pg_matviews", "schemaname k matviewname k matviewowner k tablespace k hasindexes b ispopulated b definition t"),
    ("pg_namespace", "oid e nspname k nspowner e nspacl l"),
    (
        "pg_language",
        "oid e lanname k lanowner e lanispl b lanpltrusted b lanplcallfoid e laninline e lanvalidator e lanacl l",
    ),
    (
        "pg_proc",
        "oid e proname k pronamespace e proowner e prolang e procost r prorows r provariadic e prosupport t prokind c \
         prosecdef b proleakproof b proisstrict b proretset b provolatile c proparallel c pronargs s pronargdefaults s \
         prorettype e proargtypes o proallargtypes l proargmodes l proargnames l proargdefaults t protrftypes l prosrc t \
         probin t prosqlbody t proconfig l proacl l",
    ),
    (
        "pg_roles",
        "rolname k rolsuper b rolinherit b rolcreaterole b rolcreatedb b rolcanlogin b rolreplication b rolconnlimit d \
         rolpassword t rolvaliduntil t rolbypassrls b rolconfig l oid e",
    ),
    ("pg_sequence", "seqrelid e seqtypid e seqstart n seqincrement n seqmax n seqmin n seqcache n seqcycle b"),
    (
        "pg_sequences",
        "schemaname k sequencename k sequenceowner k data_type t start_value n min_value n max_value n increment_by n \
         cycle b cache_size n last_value n",
    ),
    (
        "pg_settings",
        "name t setting t unit t category t short_desc t extra_desc t context t vartype t source t min_val t max_val t \
         enumvals l boot_val t reset_val t sourcefile t sourceline d pending_restart b",
    ),
    (
        "pg_stats",
        "schemaname k tablename k attname k inherited b null_frac r avg_width d n_distinct r most_common_vals l \
         most_common_freqs l histogram_bounds l correlation r most_common_elems l most_common_elem_freqs l \
         elem_count_histogram l",
    ),
    (
        "pg_tables",
        "schemaname k tablename k tableowner k tablespace k hasindexes b hasrules b hastriggers b rowsecurity b",
    ),
    ("pg_tablespace", "oid e spcname k spcowner e spcacl l spcoptions l"),
    (
        "pg_type",
        "oid e typname k typnamespace e typowner e typlen s typbyval b typtype c typcategory c typispreferred b \
         typisdefined b typdelim c typrelid e typsubscript t typelem e typarray e typinput t typoutput t typreceive t \
         typsend t typmodin t typmodout t typanalyze t typalign c typstorage c typnotnull b typbasetype e typtypmod d \
         typndims d typcollation e typdefaultbin t typdefault t typacl l",
    ),
    (
        "pg_user",
        "usename k usesysid e usecreatedb b usesuper b userepl b usebypassrls b passwd t valuntil t useconfig l",
    ),
    (
        "pg_collation",
        "oid e collname k collnamespace e collowner e collprovider c collisdeterministic b collencoding d collcollate t \
         collctype t colliculocale t collversion t",
    ),
    (
        "pg_opclass",
        "oid e opcmethod e opcname k opcnamespace e opcowner e opcfamily e opcintype e opcdefault b opckeytype e",
    ),
    ("pg_opfamily", "oid e opfmethod e opfname k opfnamespace e opfowner e"),
    ("pg_rewrite", "oid e rulename k ev_class e ev_type c ev_enabled c is_instead b ev_qual t ev_action t"),
    ("pg_views", "schemaname k viewname k viewowner k definition t"),
];

/// Relations that PostgreSQL has and that never have a row here.
pub(super) const EMPTY: [(&str, &str); 52] = [
    ("pg_aggregate", "aggfnoid n aggkind c"),
    ("pg_auth_members", "oid n roleid e member e grantor e admin_option b"),
    ("pg_cast", "oid e castsource e casttarget e castfunc e castcontext c castmethod c"),
    (
        "pg_conversion",
        "oid e conname k connamespace e conowner e conforencoding d contoencoding d conproc t condefault b",
    ),
    ("pg_default_acl", "oid e defaclrole e defaclnamespace e defaclobjtype c defaclacl l"),
    ("pg_event_trigger", "oid e evtname k evtevent k evtowner e evtfoid e evtenabled c evttags l"),
    ("pg_foreign_data_wrapper", "oid e fdwname k fdwowner e fdwhandler e fdwvalidator e fdwacl l fdwoptions l"),
    ("pg_foreign_server", "oid e srvname k srvowner e srvfdw e srvtype t srvversion t srvacl l srvoptions l"),
    ("pg_foreign_table", "ftrelid e ftserver e ftoptions l"),
    ("pg_inherits", "inhrelid e inhparent e inhseqno d inhdetachpending b"),
    ("pg_operator", "oid e oprname k oprnamespace e oprowner e oprkind c oprleft e oprright e oprresult e"),
    ("pg_parameter_acl", "oid e parname t paracl l"),
    ("pg_partitioned_table", "partrelid e partstrat c partnatts s partdefid e partattrs v partexprs t"),
    ("pg_policies", "schemaname k tablename k policyname k permissive t roles l cmd t qual t with_check t"),
    ("pg_policy", "oid e polname k polrelid e polcmd c polpermissive b polroles a polqual t polwithcheck t"),
    ("pg_prepared_xacts", "transaction n gid t prepared t owner k database k"),
    ("pg_publication", "oid e pubname k pubowner e puballtables b pubinsert b pubupdate b pubdelete b pubtruncate b"),
    ("pg_publication_namespace", "oid e pnpubid e pnnspid e"),
    ("pg_publication_rel", "oid e prpubid e prrelid e prqual t prattrs v"),
    ("pg_rules", "schemaname k tablename k rulename k definition t"),
    ("pg_shdescription", "objoid e classoid e description t"),
    ("pg_statistic_ext", "oid e stxrelid e stxname k stxnamespace e stxowner e stxkeys v stxkind l"),
    ("pg_subscription", "oid e subdbid e subname k subowner e subenabled b subconninfo t subslotname k"),
    ("pg_trigger", "oid e tgrelid e tgparentid e tgname k tgfoid e tgtype s tgenabled c tgisinternal b tgconstraint e"),
    ("pg_ts_config", "oid e cfgname k cfgnamespace e cfgowner e cfgparser e"),
    ("pg_ts_dict", "oid e dictname k dictnamespace e dictowner e dicttemplate e dictinitoption t"),
    ("pg_ts_parser", "oid e prsname k prsnamespace e"),
    ("pg_ts_template", "oid e tmplname k tmplnamespace e"),
    ("pg_user_mapping", "oid e umuser e umserver e umoptions l"),
    ("pg_seclabels", "objoid e classoid e objsubid d provider t label t"),
    ("pg_group", "groname k grosysid e grolist l"),
    ("pg_largeobject", "loid e pageno d data t"),
    ("pg_largeobject_metadata", "oid e lomowner e lomacl l"),
    (
        "pg_amop",
        "oid e amopfamily e amoplefttype e amoprighttype e amopstrategy s amoppurpose c amopopr e amopmethod e \
         amopsortfamily e",
    ),
    ("pg_amproc", "oid e amprocfamily e amproclefttype e amprocrighttype e amprocnum s amproc t"),
    ("pg_init_privs", "objoid e classoid e objsubid d privtype c initprivs l"),
    ("pg_seclabel", "objoid e classoid e objsubid d provider t label t"),
    ("pg_shseclabel", "objoid e classoid e provider t label t"),
    ("pg_transform", "oid e trftype e trflang e trffromsql t trftosql t"),
    ("pg_statistic_ext_data", "stxoid e stxdinherit b stxdndistinct t stxddependencies t stxdmcv t stxdexpr l"),
    ("pg_publication_tables", "pubname k schemaname k tablename k attnames l rowfilter t"),
    ("pg_subscription_rel", "srsubid e srrelid e srsubstate c srsublsn t"),
    (
        "pg_replication_slots",
        "slot_name k plugin k slot_type t datoid e database k temporary b active b active_pid d xmin n catalog_xmin n \
         restart_lsn t confirmed_flush_lsn t wal_status t safe_wal_size n two_phase b",
    ),
    (
        "pg_stat_replication",
        "pid d usesysid e usename k application_name t client_addr t client_hostname t client_port d backend_start m \
         backend_xmin n state t sent_lsn t write_lsn t flush_lsn t replay_lsn t write_lag i flush_lag i replay_lag i \
         sync_priority d sync_state t reply_time m",
    ),
    ("pg_stat_subscription", "subid e subname k pid d relid e received_lsn t latest_end_lsn t"),
    ("pg_stat_ssl", "pid d ssl b version t cipher t bits d client_dn t client_serial n issuer_dn t"),
    ("pg_stat_user_functions", "funcid e schemaname k funcname k calls n total_time f self_time f"),
    (
        "pg_stat_progress_vacuum",
        "pid d datid e datname k relid e phase t heap_blks_total n heap_blks_scanned n heap_blks_vacuumed n \
         index_vacuum_count n max_dead_tuples n num_dead_tuples n",
    ),
    (
        "pg_stat_progress_create_index",
        "pid d datid e datname k relid e index_relid e command t phase t lockers_total n lockers_done n blocks_total n \
         blocks_done n tuples_total n tuples_done n",
    ),
    ("pg_hba_file_rules", "line_number d type t database l user_name l address t netmask t auth_method t error t"),
    ("pg_file_settings", "sourcefile t sourceline d seqno d name t setting t applied b error t"),
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
        "datid e datname k numbackends d xact_commit n xact_rollback n blks_read n blks_hit n tup_returned n \
         tup_fetched n tup_inserted n tup_updated n tup_deleted n conflicts n temp_files n temp_bytes n deadlocks n \
         checksum_failures n checksum_last_failure m blk_read_time f blk_write_time f session_time f active_time f \
         idle_in_transaction_time f sessions n sessions_abandoned n sessions_fatal n sessions_killed n stats_reset m",
    ),
    (
        "pg_locks",
        "locktype t database e relation e page d tuple s virtualxid t transactionid n classid e objid e objsubid s \
         virtualtransaction t pid d mode t granted b fastpath b waitstart m",
    ),
    (
        "pg_stat_bgwriter",
        "checkpoints_timed n checkpoints_req n checkpoint_write_time f checkpoint_sync_time f buffers_checkpoint n \
         buffers_clean n maxwritten_clean n buffers_backend n buffers_backend_fsync n buffers_alloc n stats_reset m",
    ),
    (
        "pg_stat_archiver",
        "archived_count n last_archived_wal t last_archived_time m failed_count n last_failed_wal t last_failed_time m \
         stats_reset m",
    ),
    (
        "pg_shadow",
        "usename k usesysid e usecreatedb b usesuper b userepl b usebypassrls b passwd t valuntil t useconfig l",
    ),
];

const TABLES_WATCHED: &str = "\
    relid e schemaname k relname k seq_scan n seq_tup_read n idx_scan n idx_tup_fetch n n_tup_ins n n_tup_upd n n_tup_del \
    n n_tup_hot_upd n n_live_tup n n_dead_tup n n_mod_since_analyze n n_ins_since_vacuum n last_vacuum m last_autovacuum m \
    last_analyze m last_autoanalyze m vacuum_count n autovacuum_count n analyze_count n autoanalyze_count n";
const BLOCKS_OF_TABLES: &str = "\
    relid e schemaname k relname k heap_blks_read n heap_blks_hit n idx_blks_read n idx_blks_hit n toast_blks_read n \
    toast_blks_hit n tidx_blks_read n tidx_blks_hit n";
const INDEXES_WATCHED: &str =
    "relid e indexrelid e schemaname k relname k indexrelname k idx_scan n idx_tup_read n idx_tup_fetch n";
const BLOCKS_OF_INDEXES: &str =
    "relid e indexrelid e schemaname k relname k indexrelname k idx_blks_read n idx_blks_hit n";

/// The relations of `information_schema`.
pub(super) const INFORMATION: [(&str, &str); 15] = [
    (
        "domain_constraints",
        "constraint_catalog k constraint_schema k constraint_name k domain_catalog k domain_schema k domain_name k \
         is_deferrable y initially_deferred y",
    ),
    (
        "domains",
        "domain_catalog k domain_schema k domain_name k data_type y character_maximum_length d character_octet_length d \
         character_set_catalog k character_set_schema k character_set_name k collation_catalog k collation_schema k \
         collation_name k numeric_precision d numeric_precision_radix d numeric_scale d datetime_precision d \
         interval_type y interval_precision d domain_default y udt_catalog k udt_schema k udt_name k scope_catalog k \
         scope_schema k scope_name k maximum_cardinality d dtd_identifier k",
    ),
    ("check_constraints", "constraint_catalog k constraint_schema k constraint_name k check_clause y"),
    (
        "columns",
        "table_catalog k table_schema k table_name k column_name k ordinal_position d column_default y is_nullable y \
         data_type y character_maximum_length d character_octet_length d numeric_precision d numeric_precision_radix d \
         numeric_scale d datetime_precision d interval_type y interval_precision d character_set_catalog k \
         character_set_schema k character_set_name k collation_catalog k collation_schema k collation_name k \
         domain_catalog k domain_schema k domain_name k udt_catalog k udt_schema k udt_name k scope_catalog k \
         scope_schema k scope_name k maximum_cardinality d dtd_identifier k is_self_referencing y is_identity y \
         identity_generation y identity_start y identity_increment y identity_maximum y identity_minimum y \
         identity_cycle y is_generated y generation_expression y is_updatable y",
    ),
    (
        "constraint_column_usage",
        "table_catalog k table_schema k table_name k column_name k constraint_catalog k constraint_schema k \
         constraint_name k",
    ),
    (
        "key_column_usage",
        "constraint_catalog k constraint_schema k constraint_name k table_catalog k table_schema k table_name k \
         column_name k ordinal_position d position_in_unique_constraint d",
    ),
    (
        "referential_constraints",
        "constraint_catalog k constraint_schema k constraint_name k unique_constraint_catalog k \
         unique_constraint_schema k unique_constraint_name k match_option y update_rule y delete_rule y",
    ),
    (
        "routines",
        "specific_catalog k specific_schema k specific_name k routine_catalog k routine_schema k routine_name k \
         routine_type y module_catalog k module_schema k module_name k udt_catalog k udt_schema k udt_name k data_type y \
         character_maximum_length d character_octet_length d character_set_catalog k character_set_schema k \
         character_set_name k collation_catalog k collation_schema k collation_name k numeric_precision d \
         numeric_precision_radix d numeric_scale d datetime_precision d interval_type y interval_precision d \
         type_udt_catalog k type_udt_schema k type_udt_name k scope_catalog k scope_schema k scope_name k \
         maximum_cardinality d dtd_identifier k routine_body y routine_definition y external_name y external_language y \
         parameter_style y is_deterministic y sql_data_access y is_null_call y sql_path y schema_level_routine y \
         max_dynamic_result_sets d is_user_defined_cast y is_implicitly_invocable y security_type y \
         to_sql_specific_catalog k to_sql_specific_schema k to_sql_specific_name k as_locator y created m last_altered m \
         new_savepoint_level y is_udt_dependent y result_cast_from_data_type y result_cast_as_locator y \
         result_cast_char_max_length d result_cast_char_octet_length d result_cast_char_set_catalog k \
         result_cast_char_set_schema k result_cast_char_set_name k result_cast_collation_catalog k \
         result_cast_collation_schema k result_cast_collation_name k result_cast_numeric_precision d \
         result_cast_numeric_precision_radix d result_cast_numeric_scale d result_cast_datetime_precision d \
         result_cast_interval_type y result_cast_interval_precision d result_cast_type_udt_catalog k \
         result_cast_type_udt_schema k result_cast_type_udt_name k result_cast_scope_catalog k result_cast_scope_schema k \
         result_cast_scope_name k result_cast_maximum_cardinality d result_cast_dtd_identifier k",
    ),
    (
        "parameters",
        "specific_catalog k specific_schema k specific_name k ordinal_position d parameter_mode y is_result y \
         as_locator y parameter_name k data_type y character_maximum_length d character_octet_length d \
         character_set_catalog k character_set_schema k character_set_name k collation_catalog k collation_schema k \
         collation_name k numeric_precision d numeric_precision_radix d numeric_scale d datetime_precision d \
         interval_type y interval_precision d udt_catalog k udt_schema k udt_name k scope_catalog k scope_schema k \
         scope_name k maximum_cardinality d dtd_identifier k parameter_default y",
    ),
    (
        "schemata",
        "catalog_name k schema_name k schema_owner k default_character_set_catalog k default_character_set_schema k \
         default_character_set_name k sql_path y",
    ),
    (
        "sequences",
        "sequence_catalog k sequence_schema k sequence_name k data_type y numeric_precision d numeric_precision_radix d \
         numeric_scale d start_value y minimum_value y maximum_value y increment y cycle_option y",
    ),
    (
        "table_constraints",
        "constraint_catalog k constraint_schema k constraint_name k table_catalog k table_schema k table_name k \
         constraint_type y is_deferrable y initially_deferred y enforced y nulls_distinct y",
    ),
    (
        "tables",
        "table_catalog k table_schema k table_name k table_type y self_referencing_column_name k reference_generation y \
         user_defined_type_catalog k user_defined_type_schema k user_defined_type_name k is_insertable_into y is_typed y \
         commit_action y",
    ),
    ("triggers", "trigger_catalog k trigger_schema k trigger_name k event_manipulation y event_object_table k"),
    (
        "views",
        "table_catalog k table_schema k table_name k view_definition y check_option y is_updatable y is_insertable_into y \
         is_trigger_updatable y is_trigger_deletable y is_trigger_insertable_into y",
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
    let plain = |name: &str, data_type| Field::new(name, data_type, true);
    let marked = |name: &str, data_type, mark| of_catalog(plain(name, data_type), mark);
    let field = |pair: &[&str]| match (pair[0], pair[1]) {
        (name, "n") => plain(name, DataType::Int64),
        (name, "d") => plain(name, DataType::Int32),
        (name, "s") => plain(name, DataType::Int16),
        (name, "e") => marked(name, DataType::Int64, OBJECT),
        (name, "b") => plain(name, DataType::Boolean),
        (name, "r") => plain(name, DataType::Float32),
        (name, "f") => plain(name, DataType::Float64),
        (name, "m") => plain(name, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        (name, "i") => plain(name, DataType::Interval(IntervalUnit::MonthDayNano)),
        (name, "a") => plain(name, DataType::new_list(DataType::Int16, true)),
        (name, "v") => marked(name, DataType::new_list(DataType::Int16, true), SHORT_VECTOR),
        (name, "o") => marked(name, DataType::new_list(DataType::Int64, true), OBJECT_VECTOR),
        (name, "c") => marked(name, DataType::Utf8View, LETTER),
        (name, "k") => marked(name, DataType::Utf8View, NAME),
        (name, "y") => marked(name, DataType::Utf8View, VARYING),
        (name, "l") => plain(name, DataType::new_list(DataType::Utf8View, true)),
        (name, _) => plain(name, DataType::Utf8View),
    };
    Arc::new(Schema::new(words.chunks_exact(2).map(field).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_has_columns_of_known_types() {
        for (name, columns) in RELATIONS.iter().chain(&MONITORING).chain(&EMPTY).chain(&INFORMATION) {
            let words: Vec<&str> = columns.split_whitespace().collect();
            assert!(words.len().is_multiple_of(2), "{name}");
            assert!(words.chunks(2).all(|pair| "ndsetykcbrfimvoal".contains(pair[1]) && pair[0].len() > 1), "{name}");
            let mut names: Vec<&str> = words.iter().step_by(2).copied().collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{name}");
        }
    }
}
