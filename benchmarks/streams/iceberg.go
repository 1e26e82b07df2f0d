package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

// iceberg writes the configuration of a worker of Kafka Connect with Iceberg's sink, makes its
// control topic, and returns its command.
func (b *bench) iceberg(j *job) ([]string, error) {
	name := filepath.Base(j.folder)
	control := "control-" + name
	if err := b.client.CreateTopic(b.ctx, control, 1, 0); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	replace := strings.NewReplacer("BROKERS", j.brokers, "PORT", port, "FOLDER", j.folder, "NAME", name,
		"TOPIC", j.topic, "TASKS", strconv.Itoa(j.cores), "CONTROL", control,
		"MILLISECONDS", strconv.FormatInt(j.every.Milliseconds(), 10))
	args := []string{"java", j.heap(), "-cp", filepath.Join(b.kits[engineIceberg].jars, "*"),
		"org.apache.kafka.connect.cli.ConnectStandalone"}
	for _, file := range []string{"worker.properties", "sink.properties"} {
		source, err := folderOf(engineIceberg, file)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(j.folder, file)
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") { // comments name what is replaced
				lines = append(lines, replace.Replace(line))
			}
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o666); err != nil {
			return nil, err
		}
		args = append(args, path)
	}
	return args, nil
}

// freePort returns a port of this machine that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// committedUntil waits until the table of a job, which does not end by itself, has so many rows,
// kills the job, and returns the seconds that this took.
func (b *bench) committedUntil(j *job, p *rig.Process, records int64) (seconds float64, err error) {
	began := time.Now()
	for {
		rows, err := icebergRows(j.out())
		if rows >= records || err != nil {
			seconds := time.Since(began).Seconds()
			p.Stop(time.Minute) // its status is that of a killed command
			return seconds, err
		}
		select {
		case <-p.Done():
			_, err := p.Wait(b.ctx)
			return 0, errors.Join(errors.New("the job ended by itself"), err)
		case <-b.ctx.Done():
			p.Stop(time.Minute)
			return 0, b.ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(began) > limit {
			p.Stop(time.Minute)
			return 0, fmt.Errorf("%d of %d rows are committed after %v", rows, records, limit)
		}
	}
}

// icebergRows returns the rows of the newest snapshot of a table in a folder, 0 before the first.
func icebergRows(out string) (int64, error) {
	metadata := filepath.Join(out, "lake", "written", "metadata")
	version, err := os.ReadFile(filepath.Join(metadata, "version-hint.text"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(metadata, "v"+strings.TrimSpace(string(version))+".metadata.json"))
	if err != nil {
		return 0, err
	}
	var table struct {
		Current   int64 `json:"current-snapshot-id"`
		Snapshots []struct {
			ID      int64 `json:"snapshot-id"`
			Summary struct {
				Rows string `json:"total-records"`
			} `json:"summary"`
		} `json:"snapshots"`
	}
	if err := json.Unmarshal(text, &table); err != nil {
		return 0, err
	}
	for _, s := range table.Snapshots {
		if s.ID == table.Current {
			return strconv.ParseInt(s.Summary.Rows, 10, 64)
		}
	}
	return 0, nil
}
