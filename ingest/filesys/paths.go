// Package filesys opens, lists and looks up what archives consist of, by names that are paths or
// addresses of objects: s3://BUCKET/KEY. An object is a file, and what keys have in common up to
// a slash is a folder. Use says how buckets are reached.
//
// What this process has once seen of an object stays: each read names its ETag, so that an object
// that is replaced meanwhile fails to be read instead of giving bytes of two.
package filesys

import (
	"path"
	"path/filepath"
	"strings"

	"entropipe/ingest/bucket"
)

// IsBucket tells whether a name is the address of a bucket or of what is in it.
func IsBucket(name string) bool { return strings.HasPrefix(name, bucket.Scheme) }

// inBucket splits a name behind its scheme.
func inBucket(name string) (rest string, ok bool) { return strings.CutPrefix(name, bucket.Scheme) }

// Join is filepath.Join.
func Join(elements ...string) string {
	for len(elements) > 0 && elements[0] == "" {
		elements = elements[1:]
	}
	if len(elements) > 0 {
		if rest, ok := inBucket(elements[0]); ok {
			return bucket.Scheme + path.Join(append([]string{rest}, elements[1:]...)...)
		}
	}
	return filepath.Join(elements...)
}

// Clean is filepath.Clean.
func Clean(name string) string {
	if IsBucket(name) {
		return Join(name)
	}
	return filepath.Clean(name)
}

// Dir is filepath.Dir. Above a bucket there is nothing: its folder is itself.
func Dir(name string) string {
	rest, ok := inBucket(name)
	if !ok {
		return filepath.Dir(name)
	}
	if rest = path.Clean(rest); strings.Contains(rest, "/") {
		rest = path.Dir(rest)
	}
	return bucket.Scheme + rest
}

// Base is filepath.Base.
func Base(name string) string {
	if rest, ok := inBucket(name); ok {
		return path.Base(rest)
	}
	return filepath.Base(name)
}

// Split is filepath.Split.
func Split(name string) (folder, file string) {
	i := strings.LastIndexByte(name, '/')
	if !IsBucket(name) || i < len(bucket.Scheme) {
		return filepath.Split(name)
	}
	return name[:i+1], name[i+1:]
}

// Abs is filepath.Abs.
func Abs(name string) (string, error) {
	if IsBucket(name) {
		return Clean(name), nil
	}
	return filepath.Abs(name)
}

// EvalSymlinks is filepath.EvalSymlinks. Objects are no links.
func EvalSymlinks(name string) (string, error) {
	if IsBucket(name) {
		return Clean(name), nil
	}
	return filepath.EvalSymlinks(name)
}

// Rel is filepath.Rel.
func Rel(base, target string) (string, error) {
	from, ok := inBucket(base)
	to, both := inBucket(target)
	if ok && both {
		return filepath.Rel("/"+from, "/"+to)
	}
	return filepath.Rel(base, target)
}
