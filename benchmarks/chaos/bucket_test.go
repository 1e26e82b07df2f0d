//go:build chaos

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"entropipe/sinks/record"
	"entropipe/sinks/s3/s3test"
)

var (
	outKind = flag.String("chaos.out", "folder", "folder, or s3: the crew's output is in a bucket, behind a proxy")
	server  = flag.String("chaos.server", "versitygw",
		"versitygw or seaweedfs (weed), found in PATH and started; or the URL of a server that runs, with a bucket "+
			"that exists and the credentials of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	faults = flag.Int("chaos.faults", 10, "requests of a thousand at which the proxy begins a fault")
)

const bucketName = "archive"

// bucket is the crew's output where that is not a folder: a server, which is killed, too, and
// a proxy between it and the crew, which spoils requests. Whoever judges asks the server, and
// reads a mirror of the bucket.
type bucket struct {
	server *storage
	proxy  *s3test.Proxy
	client *minio.Client
	prefix string

	mirrored map[string]string // ETag of what the mirror has, by key
}

// newBucket starts a server below dir, and the proxy before it.
func newBucket(ctx context.Context, t *testing.T, dir string, seed uint64) *bucket {
	b := &bucket{prefix: fmt.Sprintf("chaos/%d", seed), mirrored: map[string]string{}}
	if os.Getenv("AWS_ACCESS_KEY_ID") == "" || !strings.Contains(*server, "://") {
		t.Setenv("AWS_ACCESS_KEY_ID", "keyofthechaos")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secretofthechaos")
		t.Setenv("AWS_SESSION_TOKEN", "")
	}
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	var err error
	if b.server, err = newStorage(ctx, *server, filepath.Join(dir, "server")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.server.kill)
	weather := s3test.NewWeather(seed, *faults)
	if b.proxy, err = s3test.NewProxy(b.server.url, weather.Plan); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.proxy.Close)
	host := strings.TrimPrefix(strings.TrimPrefix(b.server.url, "http://"), "https://")
	b.client, err = minio.New(host, &minio.Options{Creds: credentials.NewEnvAWS(), Region: "us-east-1",
		Secure: strings.HasPrefix(b.server.url, "https://"), BucketLookup: minio.BucketLookupPath})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bucket) address() string { return "s3://" + bucketName + "/" + b.prefix }

// through are the flags with which the program asks a server: the proxy, or the real one.
func through(url string) []string { return []string{"--s3-endpoint", url, "--s3-path-style"} }

// manifests counts those that the proxy has seen made.
func (b *bucket) manifests() (n int) {
	b.proxy.Created(func(key string) {
		if _, ok := record.ManifestStart(key[strings.LastIndexByte(key, '/')+1:]); ok {
			n++
		}
	})
	return n
}

// mirror makes dir the same as the output, and reads only what it lacks.
func (b *bucket) mirror(ctx context.Context, dir string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	objects := make(chan minio.ObjectInfo, 100)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for o := range objects {
				if err := b.fetch(ctx, o.Key, dir); err != nil {
					stop(fmt.Errorf("%s: %w", o.Key, err))
				}
			}
		})
	}
	there := map[string]string{}
	for o := range b.client.ListObjects(ctx, bucketName, minio.ListObjectsOptions{Prefix: b.prefix + "/",
		Recursive: true}) {
		if o.Err != nil {
			stop(o.Err)
			break
		}
		if strings.HasSuffix(o.Key, "/") {
			continue // some servers show folders
		}
		there[o.Key] = o.ETag
		if b.mirrored[o.Key] != o.ETag {
			objects <- o
		}
	}
	close(objects)
	readers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for key := range b.mirrored {
		if there[key] == "" {
			if err := os.Remove(b.local(key, dir)); err != nil {
				return err
			}
		}
	}
	b.mirrored = there
	return nil
}

func (b *bucket) local(key, dir string) string {
	return filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(key, b.prefix+"/")))
}

func (b *bucket) fetch(ctx context.Context, key, dir string) error {
	if ctx.Err() != nil {
		return nil // another one has failed
	}
	return b.client.FGetObject(ctx, bucketName, key, b.local(key, dir), minio.GetObjectOptions{})
}

// key returns the key of a file of the mirror.
func (b *bucket) key(dir, path string) string {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		panic("chaos: " + err.Error())
	}
	return b.prefix + "/" + filepath.ToSlash(name)
}

// hide removes the object of a file of the mirror.
func (b *bucket) hide(ctx context.Context, dir, path string) error {
	return b.client.RemoveObject(ctx, bucketName, b.key(dir, path), minio.RemoveObjectOptions{})
}

// show stores a file as an object.
func (b *bucket) show(ctx context.Context, dir, path, file string) error {
	_, err := b.client.FPutObject(ctx, bucketName, b.key(dir, path), file, minio.PutObjectOptions{})
	return err
}

// staged counts the objects below _staging in a mirror.
func staged(dir string) (n int, err error) {
	err = filepath.WalkDir(filepath.Join(dir, record.StagingFolder), func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	return n, err
}

// answers waits until something at url speaks HTTP.
func answers(ctx context.Context, url string) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		r, err := client.Get(url)
		if err == nil {
			r.Body.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", url, context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ports returns n ports of this machine that are free, and stay below those of outgoing
// connections, with those 10,000 above them.
func ports(n int, from int) (free []string, err error) {
	for port := from; len(free) < n; port++ {
		if port > 30000 {
			return nil, errors.New("no free ports between 20000 and 30000")
		}
		ok := true
		for _, p := range []int{port, port + 10000} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if ok = ok && err == nil; err == nil {
				l.Close()
			}
		}
		if ok {
			free = append(free, fmt.Sprint(port))
		}
	}
	return free, nil
}
