package board

// rows are the rows of the board, from top to bottom.
var rows = []Row{
	{"Now", nowPanels}, {"Kafka", kafkaPanels}, {"Chunks", chunkPanels}, {"Stages", append(stagePanels, heatmaps()...)},
	{"Geometry", geometryPanels}, {"Model", modelPanels}, {"Output", outputPanels}, {"Process", processPanels},
}

func query(expr, legend string) Query { return Query{Expr: expr, Legend: legend} }

// rare marks queries that most runs have no series for.
func rare(q Query) Query { q.Rare = true; return q }

// stat is a number; lines are a picture over time. Their width is in columns.
func stat(title, unit string, queries ...Query) Panel {
	return Panel{Title: title, Kind: "stat", Unit: unit, Width: 3, Queries: queries}
}

func lines(title, unit string, width int, queries ...Query) Panel {
	return Panel{Title: title, Kind: "timeseries", Unit: unit, Width: width, Queries: queries}
}

// filled returns a panel whose values are fractions of a limit.
func (p Panel) filled() Panel { p.Full = true; return p }

// says returns the panel with a description of its own.
func (p Panel) says(text string) Panel { p.Description = text; return p }

// see returns the panel with links to the pages of alerts.
func (p Panel) see(alerts ...string) Panel { p.Alerts = alerts; return p }

// rate returns how fast a counter grows, a second, for each value of the labels by, or
// for all series together if by is empty.
func rate(by, series string) string {
	if by != "" {
		by = "by (" + by + ") "
	}
	return "sum " + by + "(rate(" + series + "[$__rate_interval]))"
}

// mean returns the mean of a counter for each event of another one.
func mean(by, sum, count string) string { return rate(by, sum) + " / " + rate(by, count) }

// quantile returns the p-quantile of a histogram, for each value of the label by, or
// for all together if by is empty.
func quantile(p, histogram, selector, by string) string {
	if by != "" {
		by = ", " + by
	}
	return "histogram_quantile(" + p + ", " + rate("le"+by, histogram+"_bucket{"+selector+"}") + ")"
}

var nowPanels = []Panel{
	stat("Ready", "short", query(`sum(entropipe_ready{HERE})`, "ready"),
		query(`count(entropipe_build_info{HERE})`, "processes")).
		says("Processes that are ready, and all processes.").see("EntropipeNotReady", "EntropipeDown"),
	stat("Frames", "ops", query(rate("", `entropipe_frames_total{stage="commit", SOURCE}`), "clouds"),
		query(rate("", `entropipe_sequences_total{stage="commit", SOURCE}`), "sequences")).
		says("Point clouds and sequences a second that were committed.").see("EntropipeNoFrames"),
	stat("Points", "ops", query(rate("", `entropipe_points_total{stage="operate", SOURCE}`), "points")).
		says("Points a second that operators took."),
	stat("Bytes", "Bps", query(rate("", `entropipe_bytes_total{stage="fetch", SOURCE}`), "in"),
		query(rate("", `entropipe_bytes_total{stage="commit", SOURCE}`), "out")).
		says("Bytes a second of record values that were fetched, and of files that were committed."),
	stat("Lag", "s", query(`max(entropipe_consumer_lag_seconds{TOPIC})`, "longest")).see("EntropipeLag"),
	stat("Errors", "ops", query(rate("", `entropipe_errors_total{HERE}`), "a second")).see("EntropipeRejects"),
	stat("Rejects", "short", query(`sum(entropipe_dlq_records_total{SOURCE}) or vector(0)`, "rows")).
		says("Rows of table rejects that the processes have committed since they began.").see("EntropipeRejects"),
	stat("Firing alerts", "short",
		query(`count(ALERTS{alertname=~"Entropipe.+", alertstate="firing"}) or vector(0)`, "alerts")).
		says("Alerts of entropipe that fire now."),
	lines("Frames by topic", "ops", 12,
		query(rate("source", `entropipe_frames_total{stage="commit", SOURCE}`), "{{source}}")).see("EntropipeNoFrames"),
	lines("Latency of frames", "s", 12,
		query(quantile("0.5", "entropipe_frame_latency_seconds", "SOURCE", ""), "p50"),
		query(quantile("0.95", "entropipe_frame_latency_seconds", "SOURCE", ""), "p95"),
		query(quantile("0.99", "entropipe_frame_latency_seconds", "SOURCE", ""), "p99")).see("EntropipeLag"),
}

const ofPartition = "{{topic}}/{{partition}}"

var kafkaPanels = []Panel{
	lines("Lag in records", "short", 12, query(`entropipe_consumer_lag_records{TOPIC}`, ofPartition)).
		see("EntropipeLag"),
	lines("Lag in seconds", "s", 12, query(`entropipe_consumer_lag_seconds{TOPIC}`, ofPartition)).see("EntropipeLag"),
	lines("Time since the last commit", "s", 12,
		query(`time() - entropipe_last_commit_timestamp_seconds{TOPIC}`, ofPartition)).
		says("Time since the last commit of each partition; before the first one, since it was assigned.").
		see("EntropipePartitionStuck"),
	lines("Fetched bytes", "Bps", 12, query(rate("source", `entropipe_bytes_total{stage="fetch", SOURCE}`),
		"{{source}}")),
	lines("Size of records", "bytes", 12,
		query(`max by (source) (entropipe_record_size_max_bytes{SOURCE})`, "largest, {{source}}"),
		query(mean("source", `entropipe_bytes_total{stage="fetch", SOURCE}`,
			`entropipe_records_in_total{stage="fetch", SOURCE}`), "mean, {{source}}"),
		query(`min(entropipe_record_size_limit_bytes{HERE})`, "limit")).
		says("Mean and largest record of each topic, and the limit of a record."),
	lines("Rebalances", "short", 6, query(`increase(entropipe_rebalances_total{HERE}[$__rate_interval])`,
		"{{instance}}")),
	lines("Partitions", "short", 6, query(`entropipe_consumer_partitions{HERE}`, "{{instance}}")),
}

// chunkPanels follow messages that come in several records. Topics without such messages have
// no series of the two counters.
var chunkPanels = []Panel{
	lines("Open chunked frames", "short", 6, query(`entropipe_chunked_frames_open{TOPIC}`, ofPartition)).
		see("EntropipePartitionStuck"),
	lines("Memory of open chunked frames", "bytes", 6, query(`entropipe_chunked_frames_open_bytes{TOPIC}`,
		ofPartition)).says("Bytes of memory that messages take of which some chunks were read, and others were not."),
	lines("Chunked frames by result", "ops", 6,
		rare(query(rate("source, result", `entropipe_chunked_frames_total{SOURCE}`), "{{source}}: {{result}}"))).
		see("EntropipeRejects"),
	lines("Chunks by kind", "ops", 6,
		rare(query(rate("source, kind", `entropipe_chunks_total{SOURCE}`), "{{source}}: {{kind}}"))),
}

var stagePanels = []Panel{
	lines("Records", "ops", 12, query(rate("stage", `entropipe_records_in_total{SOURCE}`), "into {{stage}}"),
		query(rate("stage", `entropipe_records_out_total{SOURCE}`), "out of {{stage}}")).
		says("Records a second that entered and left stages."),
	lines("Errors by reason", "ops", 12,
		query(rate("stage, reason", `entropipe_errors_total{HERE}`), "{{stage}}: {{reason}}")).see("EntropipeRejects"),
	lines("Queues", "percentunit", 8,
		query(`entropipe_queue_length{HERE} / entropipe_queue_capacity{HERE}`, "{{stage}}, {{instance}}")).
		says("Fill of the queues in front of stages. The stage behind the first full queue limits the rate.").
		filled().see("EntropipePartitionStuck"),
	lines("Memory of the pipeline", "percentunit", 8,
		query(`entropipe_stage_inflight_bytes{stage="pipeline", HERE} / on (job, instance) `+
			`entropipe_queue_capacity{stage="pipeline_bytes", HERE}`, "{{instance}}")).
		says("Records, results and rows in memory over --memory. Near 1 for long: batches are committed early.").
		filled(),
	lines("In progress", "short", 8, query(`sum by (stage) (entropipe_stage_inflight{HERE})`, "{{stage}}")),
	lines("Time of stages, p99", "s", 12,
		query(quantile("0.99", "entropipe_stage_duration_seconds", "HERE", "stage"), "{{stage}}")).
		see("EntropipeFrameBudget", "EntropipeSlowCommits"),
	lines("Time of operators, mean", "s", 12,
		query(mean("op", `entropipe_stage_duration_seconds_sum{stage="operate", HERE}`,
			`entropipe_stage_duration_seconds_count{stage="operate", HERE}`), "{{op}}")).see("EntropipeFrameBudget"),
}

// heatmaps are the durations of each stage. Only runs with a model of the learned stage
// have times of prepare.
func heatmaps() (panels []Panel) {
	for _, stage := range []string{"fetch", "decode", "prepare", "operate", "message", "batch", "publish", "commit"} {
		q := query(`sum by (le) (increase(entropipe_stage_duration_seconds_bucket{stage="`+stage+
			`", HERE}[$__rate_interval]))`, "{{le}}")
		q.Rare = stage == "prepare"
		panels = append(panels, Panel{Title: "Times of " + stage, Kind: "heatmap", Unit: "s", Width: 6,
			Queries: []Query{q}})
	}
	return panels
}

var geometryPanels = []Panel{
	lines("Vertices, maxima and triangles of a frame", "short", 12,
		query(mean("op", `entropipe_result_elements_total{HERE}`,
			`entropipe_stage_duration_seconds_count{stage="operate", HERE}`), "{{op}}")).
		says("Mean number of elements that an operator found in a frame."),
	lines("Degenerate frames", "ops", 12,
		rare(query(rate("op, kind", `entropipe_degenerate_frames_total{HERE}`), "{{op}}: {{kind}}"))),
	lines("Points kept", "percentunit", 8,
		rare(query(quantile("0.5", "entropipe_points_kept_ratio", "HERE", "op"), "p50, {{op}}")),
		rare(query(quantile("0.99", "entropipe_points_kept_ratio", "HERE", "op"), "p99, {{op}}"))),
	lines("Streams by their hints", "short", 8,
		rare(query(`sum by (hints) (entropipe_stage_streams{HERE})`, "{{hints}}"))),
	lines("Entropy", "short", 8, rare(query(`entropipe_entropy_nats{SOURCE}`, "{{op}}, {{bound}}, {{source}}"))),
}

var modelPanels = []Panel{
	lines("Tokens", "ops", 8, query(rate("direction", `entropipe_tokens_total{stage="model", SOURCE}`),
		"{{direction}}")).
		says("Tokens a second that models read and generated."),
	lines("Time of a batch", "s", 8,
		query(quantile("0.5", "entropipe_model_batch_duration_seconds", "HERE", "task"), "p50, {{task}}"),
		query(quantile("0.99", "entropipe_model_batch_duration_seconds", "HERE", "task"), "p99, {{task}}")),
	lines("Sequences of a batch", "short", 8, query(quantile("0.5", "entropipe_batch_sequences", "HERE", ""), "p50"),
		query(quantile("0.95", "entropipe_batch_sequences", "HERE", ""), "p95")),
	lines("Fill of a batch, mean", "percentunit", 8,
		query(mean("", `entropipe_batch_fill_ratio_sum{HERE}`, `entropipe_batch_fill_ratio_count{HERE}`), "fill")),
	lines("Attention", "ops", 8, query(rate("plan", `entropipe_attention_plans_total{SOURCE}`), "{{plan}}")),
	lines("Drift of audited sequences, p99", "percentunit", 8,
		rare(query(quantile("0.99", "entropipe_attention_drift_ratio", "HERE", ""), "drift"))),
}

var outputPanels = []Panel{
	lines("Files", "ops", 8, query(rate("table", `entropipe_output_files_total{HERE}`), "{{table}}")),
	lines("Size of a file, mean", "bytes", 8, query(mean("table", `entropipe_output_file_bytes_total{HERE}`,
		`entropipe_output_files_total{HERE}`), "{{table}}")).says("Mean size of the files of a table."),
	lines("Rows", "ops", 8, query(rate("table", `entropipe_output_rows_total{HERE}`), "{{table}}")),
	lines("Age of open batches", "s", 8, query(`entropipe_batch_age_seconds{TOPIC}`, ofPartition),
		query(`max(entropipe_batch_age_limit_seconds{HERE})`, "limit")).see("EntropipeBatchOld"),
	lines("Disk", "bytes", 8, query(`entropipe_output_disk_free_bytes{HERE}`, "free, {{instance}}"),
		query(`entropipe_output_disk_size_bytes{HERE}`, "size, {{instance}}")).see("EntropipeDiskNearlyFull"),
	lines("Requests to the object store", "ops", 8, query(rate("op", `entropipe_store_requests_total{HERE}`), "{{op}}"),
		query(`sum(rate(entropipe_store_retries_total{HERE}[$__rate_interval]))`, "sent again")),
	lines("Bytes of the object store", "Bps", 8,
		query(`sum(rate(entropipe_store_sent_bytes_total{HERE}[$__rate_interval]))`, "sent"),
		query(`sum(rate(entropipe_store_received_bytes_total{HERE}[$__rate_interval]))`, "received")),
	lines("Rejects by reason", "ops", 8, query(rate("reason", `entropipe_dlq_records_total{SOURCE}`), "{{reason}}")).
		see("EntropipeRejects"),
	lines("Time since a file of a table", "s", 12,
		query(`time() - max by (table) (entropipe_output_last_close_timestamp_seconds{HERE})`, "{{table}}")).
		says("Time since the last commit of a file of each table."),
	lines("Other configurations", "short", 12,
		query(`increase(entropipe_foreign_configurations_total{TOPIC}[$__rate_interval])`, "{{topic}}, {{instance}}")).
		see("EntropipeForeignConfiguration"),
}

const ofProcess = "{{instance}}"

var processPanels = []Panel{
	lines("Processors", "short", 8, query(`rate(process_cpu_seconds_total{HERE}[$__rate_interval])`, ofProcess)).
		says("Processors that a process keeps busy."),
	lines("Memory", "bytes", 8, query(`process_resident_memory_bytes{HERE}`, "resident, {{instance}}"),
		query(`go_memstats_heap_inuse_bytes{HERE}`, "heap, {{instance}}")).
		says("Resident memory of a process, and the part that is Go's heap in use."),
	lines("Pauses of the garbage collector", "s", 8, // no number before the first collection
		rare(query(`go_gc_duration_seconds{quantile="1", HERE}`, ofProcess))).
		says("Longest pause of recent collections."),
	lines("Goroutines", "short", 8, query(`go_goroutines{HERE}`, ofProcess)).
		says("Goroutines of a process. They grow with partitions, not with time."),
	lines("Open files", "percentunit", 8, query(`process_open_fds{HERE} / process_max_fds{HERE}`, ofProcess)).
		says("Open files and connections over their limit.").filled(),
	lines("Age", "s", 8, query(`time() - process_start_time_seconds{HERE}`,
		ofProcess)).says("Time since a process began."),
}
