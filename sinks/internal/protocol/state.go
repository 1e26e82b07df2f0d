// Package protocol is a model of the commit protocol of package sinks, and an explorer
// that visits every state which the model can reach. It proves the protocol for small
// sizes: every interleaving of two or three writers, a vacuum and a reader, with a crash
// at every step, answers that are lost, and requests that a store executes late.
//
// The model knows no bytes: the window of a chunked frame is a number of records, which stands
// for the limit of records and for that of bytes in the program. Records are offsets, a file is two
// bits (staged, published), and an attempt stands for a batch of consecutive offsets. Each action
// is one call of a store, because calls of different writers interleave there and a crash happens
// between them.
//
// Vocabulary is that of package sinks. A late request is one that its sender no longer
// waits for, and that the store may still execute.
package protocol

// Bounds of the model. States are arrays, so that they can be keys.
const (
	maxWriters    = 3
	maxPartitions = 2
	maxLog        = 6 // records of a partition
	maxAttempts   = 6
)

// bits is a set of small numbers: offsets, attempts, frames.
type bits uint8

func (b bits) has(i uint8) bool      { return b&(1<<i) != 0 }
func (b bits) with(i uint8) bits     { return b | 1<<i }
func below(n uint8) bits             { return 1<<n - 1 }
func (b bits) from(start uint8) bits { return b &^ below(start) }

// What is there of a file.
const (
	staged uint8 = 1 << iota
	published
)

// Requests of an attempt that the store may still execute.
const (
	latePut    uint8 = 1 << iota // creation of the manifest
	lateCopy0                    // copy of file 0 to its final name
	lateCopy1                    // copy of file 1
	lateDelete                   // removal of the staged files
)

// attempt is one try to commit the offsets [start, end) of a partition. Its two files are
// those of two tables; file 1 is that of table frames, which is published last.
type attempt struct {
	used      bool
	partition uint8
	start     uint8
	end       uint8
	file      [2]uint8
	late      uint8
	ahead     bits // offsets at or after end that belong to frames of this attempt
	closed    recent
	begun     bits // offsets at which a message begins
	rows      bits // offsets with a row
	rejects   bits // offsets with a reject
}

// Where a writer stands.
const (
	idle       uint8 = iota // it knows nothing: it has begun, crashed or lost a race
	resuming                // it will look for the newest manifest
	adopting                // it publishes the newest manifest
	cleaning                // it discards the staging of attempts that lost
	ready                   // it may commit from next on
	staging                 // its attempt has a number and no file
	reporting               // it sends dead letters
	creating                // its files are staged
	asking                  // the answer of the creation was lost
	publishing              // it has won
	losing                  // it has lost, and discards its files
	stuck                   // it stopped with an error: a committed file is gone
)

// writer is one process with one partition at a time.
type writer struct {
	at        uint8
	partition uint8
	next      uint8
	own       uint8 // its attempt + 1; 0: none
	newest    uint8 // the attempt that it publishes + 1; 0: none
	file      uint8 // the next file that it publishes; 2: the staged files are to be removed
	ahead     bits  // offsets ahead, by the manifest that it continues
	closed    recent
}

// vacuum deletes what the compacted output covers.
type vacuum struct {
	at        uint8 // 0: it rests, 1: the record is written, 2: file 0 is deleted
	partition uint8
	start     uint8
}

// reader lists table frames, and later the other table.
type reader struct {
	listed bool
	frames bits // attempts whose file 1 was listed
	torn   bool // a frame was listed whose other rows were not
}

// state is the whole world. It is comparable.
type state struct {
	base      [maxPartitions]uint8             // start + 1; 0: there is no base
	manifest  [maxPartitions][maxLog + 1]uint8 // attempt + 1 by start; 0: none
	attempts  [maxAttempts]attempt
	writers   [maxWriters]writer
	letters   [maxPartitions]bits  // offsets with a dead letter
	compacted [maxPartitions]uint8 // end of the compacted output
	retired   [maxPartitions]bits  // starts whose files may be deleted
	vacuum    vacuum
	reader    reader
}

// kind is what a store promises.
type kind uint8

const (
	local kind = iota // moves files by rename; a call that fails did nothing or all
	s3                // copies and deletes; a request may be executed late
)

// Mutants of the protocol, each of which the explorer must find.
type mutant uint8

const (
	none mutant = iota
	noCompareAndSet
	noBase
	nextBeforePublished
	discardAfterUnknown
	endBeyondOpenFrame
	framesFirst
	lettersAfterManifest
	vacuumUncovered
	vacuumWithoutRecord
	vacuumNewest
	forgetAhead
	forgetClosed
	cleanOpenStart
	multipartPublication
	ignoreRetired
	rememberByEnd
)

var mutantNames = map[mutant]string{none: "none", noCompareAndSet: "no compare-and-set", noBase: "no base",
	nextBeforePublished: "N+1 before N is published", discardAfterUnknown: "staging discarded after an unknown answer",
	endBeyondOpenFrame: "end beyond an open frame", framesFirst: "frames published first",
	lettersAfterManifest: "dead letters after the manifest", vacuumUncovered: "vacuum of what is not compacted",
	vacuumWithoutRecord: "vacuum without its record", vacuumNewest: "vacuum of the newest manifest",
	forgetAhead: "chunks ahead forgotten", forgetClosed: "closed frames forgotten",
	cleanOpenStart:       "staging of an open start discarded",
	multipartPublication: "staging aborted by the store's rule",
	ignoreRetired:        "what was retired taken for lost",
	rememberByEnd:        "frames remembered by their ends"}

// String names the mutant.
func (m mutant) String() string { return mutantNames[m] }

// world is what does not change while the model runs.
type world struct {
	store    kind
	writers  int
	attempts int
	logs     []log   // by partition
	starts   []uint8 // offsets at which a writer may find the log to begin
	letters  bool
	vacuum   bool
	reader   bool
	mutant   mutant
	symmetry bool // writers and attempts that differ only in their numbers are the same
}
