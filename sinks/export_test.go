package sinks

import "time"

// OwnManifests counts the manifests of this process that no look has met.
func (o *Output) OwnManifests() int {
	o.own.mu.Lock()
	defer o.own.mu.Unlock()
	return len(o.own.uuids)
}

// Passing are the errors of a disk that go away by themselves.
var Passing = passing

// SetCreateWait sets the time between tries of a creation and returns the time before.
func SetCreateWait(wait time.Duration) (before time.Duration) {
	before, createWait = createWait, wait
	return before
}
