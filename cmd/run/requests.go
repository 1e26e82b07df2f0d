package run

import (
	"math"

	"entropipe/ingest/bucket"
	"entropipe/ops/pipeline"
	"entropipe/sinks/s3"
)

// requested is a store that counts its requests: one in a bucket.
type requested interface{ Requests() bucket.Requests }

// countRequests adds the requests since the last call to the metrics.
func (s *Service) countRequests() {
	store, ok := s.store.(requested)
	if !ok {
		return
	}
	all := store.Requests()
	now := all.Sub(s.requests)
	s.requests = all
	s.metrics.Store(now.Kinds(), now.Retries, now.Sent, now.Received)
}

// requestTotals are the totals of requests, for the last line of the log; none where the output
// is a folder. Those of resumes are among them.
func (s *Service) requestTotals(st *pipeline.Stats) []any {
	store, ok := s.store.(requested)
	if !ok {
		return nil
	}
	r := store.Requests()
	all := int64(0)
	for _, n := range r.Kinds() {
		all += n
	}
	done := []any{"requests", all, "sent_bytes", r.Sent, "received_bytes", r.Received, "retries", r.Retries}
	if n := float64(st.Batches); n > 0 {
		done = append(done, "requests_a_commit", hundredths(float64(all)/n),
			"dollars_a_million_commits", hundredths(s3.Dollars(r)/n*1e6))
	}
	return done
}

// hundredths rounds to two digits behind the point.
func hundredths(x float64) float64 { return math.Round(x*100) / 100 }
