// Package chaos kills the program while it works, and judges what it wrote.
//
// A run starts a broker, a topic, a steady producer and three workers that
// share one output. Workers are killed (kill -9), frozen past the group's
// session timeout (SIGSTOP, SIGCONT) and asked to end (SIGTERM) at random
// moments, the broker is killed and restarted. At the end every offset of the
// log must be in the tables exactly once, every operator's rows must be there
// for every frame, and every record whose offset the broker acknowledged must
// be the one that the tables show there. The run lives in chaos_test.go, behind
// the build tag chaos; the judge has no tag and tests of its own.
//
// It does not meet the zombie, a worker that is frozen between staging and
// manifest: random moments hit that window too rarely to prove anything. That
// case has a deterministic test where the protocol lives.
//
// Vocabulary: a record is one Kafka message; its trace are its rows in frames,
// or its row in rejects. A record is missing without a trace, doubled with a
// trace too much, stray beyond the log, wrong when the trace tells of another
// record, torn when frames knows of an operator's result that the operator's
// table lacks or has twice.
package chaos
