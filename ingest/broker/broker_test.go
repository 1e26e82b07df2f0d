package broker

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"entropipe/ops/leaktest"
)

const childEnv = "ENTROPIPE_TEST_BROKER_DIR"

// TestMain is also the broker that TestKillKeepsData kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		b, err := Start(Config{Listen: "127.0.0.1:0", Dir: dir, Partitions: 2})
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(b.Addr())
		select {}
	}
	leaktest.Main(m)
}

func start(t *testing.T, cfg Config) *Broker {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	b, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func client(t *testing.T, addr string) *kafka.Client {
	t.Helper()
	tr := &kafka.Transport{MetadataTTL: time.Second}
	t.Cleanup(tr.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(addr), Transport: tr, Timeout: time.Minute}
}

func write(t *testing.T, c *kafka.Client, topic string, values ...[]byte) error {
	t.Helper()
	w := &kafka.Writer{Addr: c.Addr, Topic: topic, Transport: c.Transport, RequiredAcks: kafka.RequireAll,
		AllowAutoTopicCreation: true,
		BatchTimeout:           time.Millisecond, BatchBytes: 64 << 20, MaxAttempts: 5,
		WriteBackoffMin: 50 * time.Millisecond}
	defer w.Close()
	for _, v := range values {
		if err := w.WriteMessages(context.Background(), kafka.Message{Value: v}); err != nil {
			return err
		}
	}
	return nil
}

func limitOf(t *testing.T, c *kafka.Client, topic string) string {
	t.Helper()
	r, err := c.DescribeConfigs(context.Background(),
		&kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{limitConfig}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Resources[0].ConfigEntries {
		if e.ConfigName == limitConfig {
			return e.ConfigValue
		}
	}
	t.Fatalf("topic %s has no %s: %+v", topic, limitConfig, r.Resources)
	return ""
}

func records(t *testing.T, c *kafka.Client, topic string, partitions int) (n int64) {
	t.Helper()
	req := map[string][]kafka.OffsetRequest{}
	for p := range partitions {
		req[topic] = append(req[topic], kafka.LastOffsetOf(p))
	}
	r, err := c.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{Topics: req})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Topics[topic] {
		if p.Error != nil {
			t.Fatal(p.Error)
		}
		n += p.LastOffset
	}
	return n
}

// New topics of kfake keep a limit of 1,048,588 bytes whatever the broker is
// told: a frame of 2 MB would be refused.
func TestNewTopicsHaveTheBrokersLimit(t *testing.T) {
	b := start(t, Config{MaxMessageBytes: 3 << 20, Partitions: 3})
	c := client(t, b.Addr())
	if err := write(t, c, "by-use", make([]byte, 2<<20)); err != nil {
		t.Fatalf("2 MiB to a topic created by its first use: %v", err)
	}
	if err := write(t, c, "by-use", make([]byte, 4<<20)); err == nil {
		t.Fatal("4 MiB went over a limit of 3 MiB")
	}
	r, err := c.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: "by-request", NumPartitions: 1, ReplicationFactor: 1},
		{Topic: "own-limit", NumPartitions: 1, ReplicationFactor: 1,
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: limitConfig, ConfigValue: "5000"}}},
	}})
	if err != nil || r.Errors["by-request"] != nil || r.Errors["own-limit"] != nil {
		t.Fatalf("create: %v, %v", err, r)
	}
	for topic, want := range map[string]string{"by-use": "3145728", "by-request": "3145728", "own-limit": "5000"} {
		if got := limitOf(t, c, topic); got != want {
			t.Errorf("%s of topic %s is %s, want %s", limitConfig, topic, got, want)
		}
	}
	m, err := c.Metadata(context.Background(), &kafka.MetadataRequest{Topics: []string{"by-use"}})
	if err != nil || len(m.Topics[0].Partitions) != 3 {
		t.Fatalf("topic created by use: %+v, %v; want 3 partitions", m, err)
	}
}

// A topic name becomes a folder below the broker's.
func TestTopicNamesThatArePathsAreRefused(t *testing.T) {
	b := start(t, Config{})
	c := client(t, b.Addr())
	for _, name := range []string{"../../escaped", "a/b", "", ".", "..", "bad name", strings.Repeat("x", 250)} {
		r, err := c.CreateTopics(context.Background(),
			&kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: name, NumPartitions: 1,
				ReplicationFactor: 1}}})
		if err != nil {
			t.Fatalf("create %q: %v", name, err)
		}
		if got := r.Errors[name]; got == nil || !strings.Contains(got.Error(), "topic") {
			t.Errorf("create %q: %v, want INVALID_TOPIC_EXCEPTION", name, got)
		}
	}
}

func TestTakenAddressIsAClearError(t *testing.T) {
	b := start(t, Config{})
	_, err := Start(Config{Listen: b.Addr()})
	if err == nil || !strings.Contains(err.Error(), b.Addr()) || !strings.Contains(err.Error(), "--listen") {
		t.Fatalf("error is %v, want one that names %s and --listen", err, b.Addr())
	}
}

func TestFolderOfAnotherBrokerIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no flock")
	}
	b := start(t, Config{Dir: t.TempDir()})
	_, err := Start(Config{Listen: "127.0.0.1:0", Dir: b.Dir()})
	if err == nil || !strings.Contains(err.Error(), b.Dir()) {
		t.Fatalf("error is %v, want one that names %s", err, b.Dir())
	}
}

func TestBadConfigIsRefused(t *testing.T) {
	for _, cfg := range []Config{{Listen: "9092"}, {Listen: "127.0.0.1:0", Partitions: -1},
		{Listen: "127.0.0.1:0", MaxMessageBytes: 5},
		{Listen: "127.0.0.1:0", Advertise: "host"}, {Listen: "192.0.2.1:0"},
		{Listen: "127.0.0.1:0", Dir: "/dev/null/x"}} {
		if b, err := Start(cfg); err == nil {
			b.Close()
			t.Errorf("%+v: started", cfg)
		}
	}
}

// Only the asked address is bound, and it is the one that clients are told.
func TestListensOnlyWhereAsked(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0") // as long as this listens, none can that wants 127.0.0.1 too
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	b := start(t, Config{Listen: "127.0.0.2:" + port})
	if b.Addr() != "127.0.0.2:"+port {
		t.Fatalf("address is %s, want 127.0.0.2:%s", b.Addr(), port)
	}
	if err := write(t, client(t, b.Addr()), "t", []byte("x")); err != nil {
		t.Fatal(err)
	}
	all := start(t, Config{Listen: "0.0.0.0:0"})
	if host, _, _ := net.SplitHostPort(all.Addr()); host != "127.0.0.1" {
		t.Fatalf("0.0.0.0 is advertised as %s", all.Addr())
	}
	named := start(t, Config{Advertise: "kafka.example:1234"})
	if named.Addr() != "kafka.example:1234" {
		t.Fatalf("advertises %s", named.Addr())
	}
}

func TestTemporaryFolderIsRemoved(t *testing.T) {
	b := start(t, Config{})
	if _, err := os.Stat(filepath.Join(b.Dir(), "broker.lock")); err != nil {
		t.Fatal(err)
	}
	b.Close()
	b.Close()
	if _, err := os.Stat(b.Dir()); !os.IsNotExist(err) {
		t.Fatalf("%s is still there: %v", b.Dir(), err)
	}
}

// kill -9 loses neither records nor a topic that was created by its first use.
func TestKillKeepsData(t *testing.T) {
	dir := t.TempDir()
	for round := int64(1); round <= 2; round++ {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() }) // where the test fails first
		line := make([]byte, 256)
		n, _ := out.Read(line)
		addr := strings.TrimSpace(string(line[:n]))
		c := client(t, addr)
		if round == 2 {
			if got := records(t, c, "kept", 2); got != 3 {
				t.Errorf("after kill -9 the topic has %d records, want 3", got)
			}
		}
		if err := write(t, c, "kept", []byte("a"), bytes.Repeat([]byte("b"), 1<<20), []byte("c")); err != nil {
			t.Errorf("write to %q: %v", addr, err)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
	b := start(t, Config{Dir: dir})
	if got := records(t, client(t, b.Addr()), "kept", 2); got != 6 {
		t.Errorf("after two kills the topic has %d records, want 6", got)
	}
}
