package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// The engines.
const (
	engineOurs  = "entropipe"
	engineFlink = "flink"
	engineSpark = "spark"

	engineIceberg = "iceberg" // Kafka Connect: messages and records alone
)

// does tells whether an engine can do a work.
func does(engine, work string) bool {
	return engine != engineIceberg || passes(work)
}

// The works. Of messages and records all engines write a row a record, of points a row a point,
// of shapes a row a frame.
const (
	workMessages = "messages" // frames, whole, as they are
	workRecords  = "records"  // small messages that nobody can read, whole, as they are
	workPoints   = "points"   // every point of frames
	workShapes   = "shapes"   // hulls and maxima of frames
)

// passes tells whether a work passes values through.
func passes(work string) bool { return work == workMessages || work == workRecords }

// job is one run of an engine.
type job struct {
	engine, work  string
	brokers       string
	topic, folder string // the folder holds the output and the checkpoints
	cores         int
	every         time.Duration
	batch         int   // records of a micro-batch of Spark
	records       int64 // of the topic
	follow        bool  // the job does not end by itself
}

func (j *job) out() string         { return filepath.Join(j.folder, "out") }
func (j *job) checkpoints() string { return filepath.Join(j.folder, "checkpoints") }

// line returns the command line of a job and its variables.
func (b *bench) line(j *job) (args, env []string, err error) {
	env = []string{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"}
	switch j.engine {
	case engineOurs:
		args, env = b.ours(j), append(env, "GOMAXPROCS="+strconv.Itoa(j.cores))
	case engineFlink:
		args, err = b.flink(j)
		env = append(env, "JVM_ARGS="+j.heap())
	case engineIceberg:
		args, err = b.iceberg(j)
	case engineSpark:
		args, err = b.spark(j)
		env = append(env, "SPARK_LOCAL_IP=127.0.0.1", "PYSPARK_PYTHON="+b.kits[engineSpark].python)
	}
	return args, env, err
}

// heap is what a virtual machine may have of objects. Whole messages of 2 MB end Spark and Flink with
// an OutOfMemoryError in 2 GB, and a task of Iceberg's sink in 1.5 GB now and then: Flink's sink looks at
// the size of a page of Parquet after each hundred values, and all hold what they have fetched beside a
// row group.
func (j *job) heap() string {
	if j.work == workMessages {
		return "-Xmx3g"
	}
	return "-Xmx1536m"
}

// ours is the command of entropipe. Table messages keeps values whole, whether they can be read or
// not; frames are checked on the way.
func (b *bench) ours(j *job) []string {
	args := []string{b.program.Path, "run", "--brokers", j.brokers, "--topic", j.topic, "--out", j.out(),
		"--roll-age", j.every.String(), "--log-level", "warn"}
	switch j.work {
	case workMessages, workRecords:
		args = append(args, "--ops", "none", "--tables", "messages", "--max-rejects", "none")
	case workPoints:
		args = append(args, "--ops", "none", "--tables", "points")
	case workShapes:
		args = append(args, "--ops", "hull2d,maxima3d", "--tables", "hulls,maxima")
	}
	if !j.follow {
		args = append(args, "--until-end")
	}
	return args
}

// rowsOf is what a job of the peers calls a work.
func rowsOf(work string) string {
	if passes(work) {
		return "values"
	}
	return work
}

func (b *bench) flink(j *job) ([]string, error) {
	script, err := folderOf("flink_job.py")
	args := []string{b.kits[engineFlink].python, script, rowsOf(j.work), "--brokers", j.brokers, "--topic", j.topic,
		"--out", j.out(), "--checkpoints", j.checkpoints(), "--every", strconv.Itoa(int(j.every.Seconds())), "--cores",
		strconv.Itoa(j.cores), "--jars", b.kits[engineFlink].jars}
	if j.follow {
		args = append(args, "--follow")
	}
	return args, err
}

func (b *bench) spark(j *job) ([]string, error) {
	script, err := folderOf("spark_job.py")
	if err != nil {
		return nil, err
	}
	modules, err := folderOf("..", "backfill") // spark_daemon.py lets all processor time be counted
	if err != nil {
		return nil, err
	}
	jars, err := filepath.Glob(filepath.Join(b.kits[engineSpark].jars, "*.jar"))
	if err != nil {
		return nil, err
	}
	args := []string{b.kits[engineSpark].bin("spark-submit"), "--master", fmt.Sprintf("local[%d,4]", j.cores),
		"--driver-memory", j.heap()[len("-Xmx"):], "--jars", joined(jars)}
	for _, setting := range []string{"spark.ui.enabled=false", "spark.log.level=WARN",
		"spark.sql.parquet.compression.codec=zstd", "spark.hadoop.parquet.compression.codec.zstd.level=1",
		"spark.hadoop.parquet.block.size=67108864",
		"spark.sql.execution.arrow.maxRecordsPerBatch=8", // values are large
		"spark.python.daemon.module=spark_daemon", "spark.executorEnv.PYTHONPATH=" + modules} {
		args = append(args, "--conf", setting)
	}
	args = append(args, script, rowsOf(j.work), "--brokers", j.brokers, "--topic", j.topic, "--out", j.out(),
		"--checkpoints", j.checkpoints())
	if j.follow {
		return append(args, "--every", strconv.FormatFloat(j.every.Seconds(), 'g', -1, 64)), nil
	}
	return append(args, "--batch", strconv.Itoa(j.batch)), nil
}

func joined(names []string) (all string) {
	for _, name := range slices.Sorted(slices.Values(names)) {
		if all != "" {
			all += ","
		}
		all += name
	}
	return all
}
