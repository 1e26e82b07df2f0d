//go:build !kafka

package ingest

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// realBroker: the tests run on a broker whose versions they do not choose.
const realBroker = false

// start starts a fake broker and returns its address. The cluster is nil where
// the suite runs against a real Kafka.
func start(t *testing.T, opts ...kfake.Opt) (string, *kfake.Cluster) {
	t.Helper()
	opts = append([]kfake.Opt{kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second)}, opts...)
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()[0], c
}
