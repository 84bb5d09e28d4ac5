"""What a statement may hold, by the names of sqlglot's nodes, and which functions it may call.

A function is on a list if it computes something from its arguments or tells something about the server, in little time
and space. None writes, waits, locks, reads files, speaks to others, runs text as SQL, or makes a long text of a short
one (as `repeat`, `lpad` and `randomblob` do).
"""

NODES = frozenset(
    """
    Select Union Intersect Except Subquery With CTE Values Tuple Paren Alias Aliases TableAlias
    Identifier Column Table Star Dot Var From Join Lateral Where Group Having Order Ordered Limit Offset Distinct
    Window WindowSpec WithinGroup Filter Rollup Cube GroupingSets Partition
    Literal Boolean Null National BitString HexString ByteString RawString UnicodeString Introducer
    Interval IntervalSpan DataType DataTypeParam Collate AtTimeZone SessionParameter
    Add Sub Mul Div IntDiv Mod Neg Not DPipe Concat EQ NEQ GT GTE LT LTE Is Between In Like ILike SimilarTo
    Glob RegexpILike Any All NullSafeEQ NullSafeNEQ Bracket Slice BitwiseAnd BitwiseOr BitwiseXor BitwiseNot
    BitwiseLeftShift BitwiseRightShift Escape IgnoreNulls RespectNulls IndexTableHint TableSample
    JSONPath JSONPathKey JSONPathRoot JSONPathSubscript JSONPathWildcard JSONKeyValue
    """.split()
)

FUNCTIONS = frozenset(
    """
    And Or Xor Case If Cast TryCast Coalesce Nullif Nvl2 Greatest Least Exists Any Collate
    Count CountIf Sum Avg Min Max Stddev StddevPop StddevSamp Variance VariancePop Median Mode PercentileCont
    PercentileDisc GroupConcat ArrayAgg LogicalAnd LogicalOr Corr CovarPop CovarSamp AnyValue Grouping
    RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead FirstValue LastValue NthValue
    Abs Ceil Floor Round Trunc Sign Sqrt Exp Ln Log Pow Degrees Radians Pi Sin Cos Tan
    Lower Upper Length ByteLength BitLength Trim Left Right Substring SubstringIndex StrPosition Reverse Initcap Ascii
    Chr Unicode Hex LowerHex Unhex MD5 SHA SHA2 Concat ConcatWs Replace Translate SplitPart StartsWith EndsWith
    RegexpLike RegexpILike RegexpExtract RegexpSubstr RegexpInstr RegexpCount Overlay Contains
    Array ArraySize ArrayContains ArrayContainsAll ArrayOverlaps ArrayToString ArrayContainedBy ArrayPosition Unnest
    ExplodingGenerateSeries GenerateSeries
    JSONExtract JSONExtractScalar JSONBExtract JSONBExtractScalar JSONBContains JSONBExists JSONKeys JSONType
    CurrentDate CurrentTime CurrentTimestamp CurrentDatetime Localtime Localtimestamp UtcDate UtcTime UtcTimestamp
    Extract Date Time Timestamp DateTrunc TimestampTrunc DateAdd DateSub DateDiff TimestampDiff TimestampAdd DateBin
    TimeToStr StrToTime StrToDate ToChar TimeToUnix UnixToTime UnixToStr TsOrDsToDate TsOrDsToTimestamp TsOrDsToTime
    TsOrDsToDatetime TsOrDsAdd TsOrDsDiff Day DayOfMonth DayOfWeek DayOfYear Month Quarter Week WeekOfYear Year Hour
    Minute Second LastDay MakeInterval JustifyDays JustifyHours JustifyInterval DateFromParts FromISO8601Timestamp
    CurrentDatabase CurrentSchema CurrentUser SessionUser CurrentVersion CurrentCatalog CurrentRole Typeof MatchAgainst
    """.split()
)

FUNCTIONS_BY_NAME = frozenset(
    """
    age bool_and bool_or cardinality ceiling char_length character_length date_format date_part datediff datetime day
    dayname elt field find_in_set format_bytes from_unixtime glob host hour ifnull iif inet_ntoa instr int4 isnull
    json_array_length json_each json_length json_type json_valid json_array_elements jsonb_array_elements
    jsonb_array_length jsonb_each jsonb_each_text jsonb_object_keys jsonb_typeof julianday locate
    mod monthname nullif now octet_length power quote_ident row_count sec_to_time sqlite_version str_to_date strftime
    substr sysdate time_to_sec timediff timestampdiff to_char to_date to_timestamp total typeof unix_timestamp unixepoch
    version width_bucket
    col_description current_schemas current_setting format_type has_table_privilege
    obj_description pg_backend_pid pg_blocking_pids pg_column_size pg_conf_load_time pg_current_wal_lsn
    pg_database_size pg_get_constraintdef pg_get_indexdef pg_get_userbyid pg_get_viewdef pg_indexes_size
    pg_is_in_recovery pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp
    pg_postmaster_start_time pg_relation_size pg_size_bytes pg_size_pretty pg_stat_get_activity pg_table_size
    pg_tablespace_size pg_total_relation_size pg_wal_lsn_diff
    connection_id found_rows
    """.split()
)

SECRET_TABLES = frozenset(
    [
        *((name, schema) for name in ("pg_authid", "pg_shadow", "pg_user_mapping") for schema in ("", "pg_catalog")),
        *((name, schema) for name in ("pg_user_mappings", "pg_hba_file_rules") for schema in ("", "pg_catalog")),
        *((name, "mysql") for name in ("user", "global_priv", "servers", "proxies_priv")),
    ]
)
"""Name and schema of tables that hold passwords or what they are checked against."""
