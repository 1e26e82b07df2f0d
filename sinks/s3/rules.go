package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7/pkg/lifecycle"

	"entropipe/ingest/bucket"
)

// Rules are the settings of a bucket that may touch an output, each in one line.
type Rules struct {
	Harmful []string // would remove objects of the output, or make them unreadable
	Notes   []string // settings that are allowed, and what could not be read
}

// Actions of a policy that only Rules needs.
const (
	opVersioning = "s3:GetBucketVersioning"
	opLifecycle  = "s3:GetLifecycleConfiguration"
	opLock       = "s3:GetBucketObjectLockConfiguration"
)

// Rules reads versions, rules and locks of the bucket. A store that lacks such settings, or
// denies to show them, is no error: Notes says so. Errors are faults of the network and of
// credentials.
func (s *Store) Rules(ctx context.Context) (r Rules, err error) {
	for _, read := range []func(context.Context, *Rules) error{s.readVersioning, s.readLifecycle, s.readLock} {
		if err := read(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// ask sends a request for a setting. false: the bucket has none, or does not show it.
func (s *Store) ask(ctx context.Context, op, what string, r *Rules, send func(ctx context.Context) error) (bool,
	error) {
	err := s.c.Do(ctx, op, "", 0, send)
	f := (*bucket.Fault)(nil)
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &f):
		return false, err
	case notXML(err):
		r.Notes = append(r.Notes, what+" cannot be read: the store answers another request")
		return false, nil
	case f.Missing() || f.Code == "NoSuchLifecycleConfiguration" || f.Code == "ObjectLockConfigurationNotFoundError":
		return false, nil
	case f.Status == http.StatusForbidden:
		r.Notes = append(r.Notes, fmt.Sprintf("%s cannot be read: %s is denied", what, op))
		return false, nil
	case f.Status == http.StatusNotImplemented || f.Status == http.StatusMethodNotAllowed ||
		f.Code == "NotImplemented" || f.Status == http.StatusBadRequest:
		r.Notes = append(r.Notes, what+" cannot be read: the store does not have the request")
		return false, nil
	}
	return false, err
}

// notXML tells whether an answer had another document than was asked for, as of a store that
// does not know the parameter of the request.
func notXML(err error) bool {
	var kind xml.UnmarshalError
	var syntax *xml.SyntaxError
	return errors.As(err, &kind) || errors.As(err, &syntax)
}

func (s *Store) readVersioning(ctx context.Context, r *Rules) error {
	status := ""
	_, err := s.ask(ctx, opVersioning, "versioning", r, func(ctx context.Context) error {
		v, err := s.c.Core.GetBucketVersioning(ctx, s.in)
		status = v.Status
		return err
	})
	if status == "Enabled" {
		r.Notes = append(r.Notes, "the bucket keeps versions: every commit leaves some of its staged files, which a "+
			"rule for noncurrent versions may expire")
	}
	return err
}

func (s *Store) readLock(ctx context.Context, r *Rules) error {
	var lock, mode string
	_, err := s.ask(ctx, opLock, "object lock", r, func(ctx context.Context) error {
		enabled, retention, _, _, err := s.c.Core.GetObjectLockConfig(ctx, s.in)
		if lock = enabled; retention != nil {
			mode = retention.String()
		}
		return err
	})
	switch {
	case mode != "":
		r.Harmful = append(r.Harmful, fmt.Sprintf("object lock retains every object (%s): staged files could not be "+
			"removed", mode))
	case lock != "":
		r.Notes = append(r.Notes, "object lock is on, without a default retention")
	}
	return err
}

func (s *Store) readLifecycle(ctx context.Context, r *Rules) error {
	var rules []lifecycle.Rule
	_, err := s.ask(ctx, opLifecycle, "lifecycle rules", r, func(ctx context.Context) error {
		found, err := s.c.Core.GetBucketLifecycle(ctx, s.in)
		if err == nil {
			rules = found.Rules
		}
		return err
	})
	for i := range rules {
		s.judge(&rules[i], r)
	}
	return err
}

// archives are the storage classes whose objects must be restored before they can be read. Those
// of other stores than AWS are among them.
var archives = []string{"GLACIER", "DEEP_ARCHIVE", "ARCHIVE", "COLD_ARCHIVE", "DEEP_COLD_ARCHIVE"}

// judge notes what a rule of the bucket does to the output.
func (s *Store) judge(rule *lifecycle.Rule, r *Rules) {
	if rule.Status != "Enabled" || !s.covers(rule) {
		return
	}
	name := "a rule without a name"
	if rule.ID != "" {
		name = fmt.Sprintf("rule %q", rule.ID)
	}
	if prefix := prefixOf(rule); prefix != "" {
		name += fmt.Sprintf(" for %q", prefix)
	}
	harm := func(format string, args ...any) {
		r.Harmful = append(r.Harmful, name+" "+fmt.Sprintf(format, args...))
	}
	note := func(format string, args ...any) { r.Notes = append(r.Notes, name+" "+fmt.Sprintf(format, args...)) }
	e := &rule.Expiration
	switch {
	case e.Days > 0:
		harm("removes objects of the output after %d days", e.Days)
	case !e.IsDateNull():
		harm("removes objects of the output on %s", e.Date.Format("2006-01-02"))
	}
	if all := rule.AllVersionsExpiration; !all.IsNull() && !all.DeleteMarker.IsEnabled() {
		harm("removes all versions of the output's objects after %d days", all.Days)
	}
	if class := rule.Transition.StorageClass; slices.Contains(archives, class) {
		harm("moves objects of the output to %s after %d days, where they cannot be read", class, rule.Transition.Days)
	} else if class != "" {
		note("moves objects of the output to %s", class)
	}
	if n := &rule.NoncurrentVersionExpiration; n.NoncurrentDays > 0 || n.NewerNoncurrentVersions > 0 {
		note("removes noncurrent versions, which is allowed")
	}
	if rule.AbortIncompleteMultipartUpload.DaysAfterInitiation > 0 {
		note("aborts unfinished uploads, which is allowed")
	}
}

// covers tells whether a rule applies to an object that the output has or may get. Objects of
// outputs have no tags, and files of up to 4 GiB.
func (s *Store) covers(rule *lifecycle.Rule) bool {
	f := &rule.RuleFilter
	if !f.Tag.IsEmpty() || len(f.And.Tags) > 0 ||
		max(f.ObjectSizeGreaterThan, f.And.ObjectSizeGreaterThan) >= largestFile {
		return false
	}
	of, out := prefixOf(rule), s.c.Key("")
	return strings.HasPrefix(out, of) || strings.HasPrefix(of, out)
}

// prefixOf returns the prefix of a rule, which stands in one of three places.
func prefixOf(rule *lifecycle.Rule) string {
	for _, prefix := range []string{rule.RuleFilter.Prefix, rule.RuleFilter.And.Prefix} {
		if prefix != "" {
			return prefix
		}
	}
	return rule.Prefix
}
