package s3test

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// clock is that of objects.
type clock struct{ ahead atomic.Int64 }

// Now implements gofakes3.TimeSource.
func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())).UTC() }

// Since implements gofakes3.TimeSource.
func (c *clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Advance sets the clock of objects forward: they look older.
func (s *Server) Advance(by time.Duration) { s.clock.ahead.Add(int64(by)) }

// Age returns how old an object looks.
func (s *Server) Age(t testing.TB, key string) time.Duration {
	t.Helper()
	o, err := s.backend.HeadObject(Bucket, key)
	if err != nil {
		t.Fatal(err)
	}
	o.Contents.Close()
	made, err := time.Parse(http.TimeFormat, o.Metadata["Last-Modified"])
	if err != nil {
		t.Fatal(err)
	}
	return s.clock.Now().Sub(made)
}

// AbortUploads ends all uploads in parts that are not complete, as a rule of a bucket does, and
// returns how many there were.
func (s *Server) AbortUploads(t testing.TB) int {
	t.Helper()
	var list struct {
		Upload []struct{ Key, UploadId string }
	}
	answer, err := http.Get(s.URL + "/" + Bucket + "?uploads")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := xml.NewDecoder(answer.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, u := range list.Upload {
		at := url.URL{Path: "/" + Bucket + "/" + u.Key, RawQuery: url.Values{"uploadId": {u.UploadId}}.Encode()}
		r, err := http.NewRequest(http.MethodDelete, s.URL+at.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ended, err := http.DefaultClient.Do(r)
		if err != nil || ended.StatusCode != http.StatusNoContent {
			t.Fatalf("abort %s: %v, %v", u.Key, ended, err)
		}
		ended.Body.Close()
	}
	return len(list.Upload)
}
