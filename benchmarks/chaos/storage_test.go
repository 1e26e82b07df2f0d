//go:build chaos

package chaos

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"entropipe/benchmarks/rig"
)

// storage is a server of S3 with one bucket. One that somebody else has started is never
// killed.
type storage struct {
	kind    string // versitygw, seaweedfs, or a URL
	version string
	url     string
	spec    rig.Spec
	process *rig.Process // nil: it is somebody else's
}

// newStorage starts a server that keeps its objects below dir.
func newStorage(ctx context.Context, kind, dir string) (*storage, error) {
	s := &storage{kind: kind, version: "unknown", url: strings.TrimRight(kind, "/")}
	if strings.Contains(kind, "://") {
		return s, nil
	}
	make, known := map[string]func(dir string, ports []string) error{"versitygw": s.versitygw,
		"seaweedfs": s.seaweedfs}[kind]
	if !known {
		return nil, fmt.Errorf("-chaos.server %s: want versitygw, seaweedfs or a URL", kind)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	free, err := ports(6, 20000+rand.IntN(9000))
	if err == nil {
		err = make(dir, free)
	}
	if err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// versitygw keeps objects as files, and buckets as folders.
func (s *storage) versitygw(dir string, ports []string) error {
	program, err := exec.LookPath("versitygw")
	if err != nil {
		return err
	}
	if info, err := buildinfo.ReadFile(program); err == nil {
		s.version = info.Main.Version
	}
	s.url = "http://127.0.0.1:" + ports[0]
	s.spec = rig.Spec{Path: program, Args: []string{"--port", "127.0.0.1:" + ports[0], "--quiet", "posix",
		filepath.Join(dir, "data")}, Log: filepath.Join(dir, "log"),
		Env: []string{"ROOT_ACCESS_KEY=" + os.Getenv("AWS_ACCESS_KEY_ID"),
			"ROOT_SECRET_KEY=" + os.Getenv("AWS_SECRET_ACCESS_KEY")}}
	return os.MkdirAll(filepath.Join(dir, "data", bucketName), 0o777)
}

// seaweedfs is one process with its master, volumes, filer and gateway of S3. Each of its
// ports takes the one 10,000 above it for calls among them.
func (s *storage) seaweedfs(dir string, ports []string) error {
	program, err := exec.LookPath("weed")
	if err != nil {
		return err
	}
	if said, err := exec.Command(program, "version").Output(); err == nil {
		s.version = strings.Join(strings.Fields(strings.TrimPrefix(string(said), "version")), " ")
	}
	s.url = "http://127.0.0.1:" + ports[0]
	args := []string{"mini", "-dir=" + filepath.Join(dir, "data"), "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
		"-master.telemetry=false", "-admin.ui=false", "-webdav=false", "-bucket=" + bucketName, "-s3.port=" + ports[0],
		"-master.port=" + ports[1], "-volume.port=" + ports[2], "-filer.port=" + ports[3], "-admin.port=" + ports[4],
		"-s3.port.iceberg=0", "-s3.port.lance=0"}
	s.spec = rig.Spec{Path: program, Args: args, Log: filepath.Join(dir, "log")}
	return os.MkdirAll(filepath.Join(dir, "data"), 0o777)
}

// start starts the server, again after a kill, and returns when it answers.
func (s *storage) start(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute to start a server"))
	defer cancel()
	if s.process, err = rig.Start(s.spec); err != nil {
		return err
	}
	if err := answers(ctx, s.url); err != nil {
		return fmt.Errorf("%w; the last it logged:\n%s", err, s.process.Tail(10))
	}
	return nil
}

// kill ends the server with kill -9.
func (s *storage) kill() {
	if s.process != nil {
		s.process.Kill()
	}
}
