package protocol

// The model of a bucket has each request of a store in a bucket as a step of its own: what a
// writer knows changes with the answer, what the bucket holds with the execution, and either
// may be missing. Chunks, dead letters and vacuum are left to the model of all stores.

// Bounds of the model of a bucket.
const (
	bucketLog     = 3 // records of the one partition
	bucketRanges  = bucketLog * (bucketLog + 1) / 2
	bucketFiles   = 3 // files of a commit; the last one is that of table frames
	bucketTries   = 4 // attempts
	bucketClients = 3
)

// content is what an object holds at the name of a published file: the number of an attempt
// + 1, or what is there by mistake. 0: there is no object.
type content uint8

const (
	strange content = 14 // bytes of another program
	forged  content = 15 // such bytes, published by the protocol under the name of its own
)

// etag is what a staged object is: 0 none, first and second the bytes of its attempt, whose
// tags differ if the bucket gives each execution another one.
type etag uint8

const (
	noTag etag = iota
	first
	second
	meddled // bytes of another program
)

// upload is an attempt: its staged objects, and the requests for them that the bucket may
// still execute.
type upload struct {
	used   bool
	start  uint8
	end    uint8
	staged [bucketFiles]etag
	open   bits // files whose upload in parts has begun and not ended
	puts   bits // requests in the air: PUT of a staged object, or the end of an upload
	drops  bits // DELETE of a staged object
	record bool // PUT of the manifest
	copies [bucketFiles]etag
}

// What a client knows of a file that it publishes.
const (
	unknown  uint8 = iota
	uploaded       // an upload in parts has begun; used while the file is staged
	isStaged       // it is staged; the tag says as what
	isGone         // it is not staged
	isDue          // it is to be copied
	isCopied       // it is published, and its staged object is to be deleted
	isThere        // it is published, and nothing was staged
)

// known is what a client knows of a file.
type known struct {
	what uint8
	tag  etag
}

// client is a process that writes to the bucket.
type client struct {
	at     uint8
	seen   uint8 // start + 1 of the newest manifest that the process has seen; 0: none
	next   uint8
	own    uint8 // its attempt + 1; 0: none
	of     uint8 // the attempt that it publishes + 1
	fresh  bool  // it has staged that attempt itself
	unsure bool  // an earlier creation may be executed
	file   [bucketFiles]known
	lost   [bucketTries]bits // files of attempts that have lost, as the listing showed them
}

// Where a client stands, beside the states of writers.
const (
	listing    uint8 = 20 + iota // it lists again, without a hint
	following                    // it looks for a manifest behind the newest one that it knows
	removing                     // it deletes staged objects that are copied
	abandoning                   // its manifest was certainly not created
)

// bucket is the whole world of the model of a bucket. It is comparable.
type bucket struct {
	manifest [bucketLog]uint8 // attempt + 1 by start; 0: none
	final    [bucketRanges][bucketFiles]content
	uploads  [bucketTries]upload
	clients  [bucketClients]client
	faults   uint8 // requests that did not end well so far
	meddled  bool
	listed   bool // the reader has listed table frames
	frames   bits // ranges whose frames it has listed
	torn     bool // a frame was listed whose other rows were not
}

// rangeOf returns the index of the names of a batch.
func rangeOf(start, end uint8) uint8 {
	return [bucketLog]uint8{0, bucketLog, 2*bucketLog - 1}[start] + end - start - 1
}

// bucketMutant is a fault of the protocol that the explorer must find.
type bucketMutant uint8

const (
	noMutant bucketMutant = iota
	noIfNoneMatch
	conflictIsLost
	unknownIsLost
	existsIsLost
	lastAnswerDecides
	publishByCompleting
	missingUploadIsDone
	doneBySize
	noIfMatch
	stagedIsTrusted
	changedIsLost
	missingIsLost
	unknownCopyIsDone
	deleteBeforeCopies
	loserDeletesAll
	openStartIsLost
	framesWithOthers
	hintIsTrusted
	nextWithoutRoll
	stagingExpires
)

var bucketMutantNames = map[bucketMutant]string{
	noMutant:            "none",
	noIfNoneMatch:       "a manifest put without If-None-Match",
	conflictIsLost:      "409 taken for lost",
	unknownIsLost:       "an unknown answer taken for lost",
	existsIsLost:        "412 taken for lost, without a look at who has won",
	lastAnswerDecides:   "a refusal after an unknown answer taken for certain",
	publishByCompleting: "publication by completing uploads",
	missingUploadIsDone: "an upload that is gone taken for completed",
	doneBySize:          "done told by size",
	noIfMatch:           "a copy without a condition on its source",
	stagedIsTrusted:     "rolling forward what is staged without its checksum",
	changedIsLost:       "another ETag taken for another file",
	missingIsLost:       "a source that is gone taken for a lost file",
	unknownCopyIsDone:   "a copy whose answer is lost taken for done",
	deleteBeforeCopies:  "staging deleted before the copies are done",
	loserDeletesAll:     "a loser deletes the whole folder",
	openStartIsLost:     "staging of an open start discarded",
	framesWithOthers:    "frames copied beside the other tables",
	hintIsTrusted:       "a resume that trusts the hint",
	nextWithoutRoll:     "N+1 before N is published",
	stagingExpires:      "staging expired by a rule of the bucket",
}

// String names the mutant.
func (m bucketMutant) String() string { return bucketMutantNames[m] }

// bucketWorld is what does not change while the model of a bucket runs.
type bucketWorld struct {
	clients  int
	attempts int
	records  uint8
	files    int
	faults   uint8 // requests that may end badly
	parallel bool  // copies of a commit run at once, but for the last table
	parts    bool  // the first file is an upload in parts, which a rule may abort
	tags     bool  // each execution of a PUT has another ETag
	hints    bool  // a resume begins its listing at any offset
	meddling bool  // another program replaces one object
	reader   bool
	symmetry bool
	mutant   bucketMutant
}

// Explore visits all states breadth first, as that of the model of all stores does.
func (w *bucketWorld) Explore(most int) (states int, _ *Violation) {
	normal := func(*bucket) {}
	if w.symmetry {
		normal = canonicalBucket
	}
	finished := map[print]string{}
	return explore(most, normal, w.step, func(s *bucket) string {
		if problem := w.check(s); problem != "" {
			return problem
		}
		rest := *s
		rest.clients, rest.listed, rest.frames, rest.faults = [bucketClients]client{}, false, 0, 0
		return once(finished, &rest, w.finish)
	})
}
