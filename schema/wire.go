package schema

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// DeliverNone is the only value of [HeaderDeliver].
const DeliverNone = "none"

// SnappyFramed is the value of [HeaderEncoding] for data in Snappy's framing format.
const SnappyFramed = "x-snappy-framed"

// The headers of the wire. Every duration is a Go duration such as "1.5s".
const (
	// HeaderID is the event's UUIDv7.
	HeaderID = "Hook-Id"
	// HeaderAttempt counts how often the event was asked, from 1.
	HeaderAttempt = "Hook-Attempt"
	// HeaderTool is the tool's name; absent where the event has none.
	HeaderTool = "Hook-Tool"
	// HeaderSession is the runtime's session.
	HeaderSession = "Hook-Session"
	// HeaderLeft is the time left, as a duration: clocks need not agree.
	HeaderLeft = "Hook-Left"
	// HeaderDeliver is "none" where the answer can not tell the agent anything;
	// absent otherwise.
	HeaderDeliver = "Hook-Deliver"
	// HeaderAck lists the events whose injections were handed over.
	HeaderAck = "Hook-Ack"
	// HeaderBatch is a batch's id.
	HeaderBatch = "Hook-Batch"
	// HeaderConfig is the config version a batch names its hooks by, and behind a
	// blank the fabric whose version it is.
	HeaderConfig = "Hook-Config"
	// HeaderHooks lists a batch's hooks, indexes separated by commas.
	HeaderHooks = "Hook-Hooks"
	// HeaderAgent and HeaderEvent carry the subject's facts on to workers.
	HeaderAgent = "Hook-Agent"
	HeaderEvent = "Hook-Event"
	// HeaderBeat marks a message on a reply subject that says "still at work".
	HeaderBeat = "Hook-Beat"
	// HeaderRetryAfter is, in an answer that refused something because its agent asks too
	// often, when it may be asked again.
	HeaderRetryAfter = "Hook-Retry-After"
	// HeaderNumber counts a broker's messages with records, from 1; HeaderDropped is
	// how many records it had to drop before this message.
	HeaderNumber  = "Hook-Number"
	HeaderDropped = "Hook-Dropped"
	// HeaderEncoding says how the records of a message are packed: as [SnappyFramed],
	// or, where it is absent, not at all.
	HeaderEncoding = "Hook-Encoding"
	// HeaderTraceparent and HeaderTracestate are the place in a trace that the message
	// comes from, as W3C Trace Context writes it; absent where nobody traces.
	HeaderTraceparent = "traceparent"
	HeaderTracestate  = "tracestate"
)

// The sizes that every peer keeps to. What is larger is refused with a
// sentence, never cut silently.
const (
	// MaxPayload is the largest message of the bus.
	MaxPayload = 8 << 20
	// MaxEvent is the largest event body, leaving room for headers.
	MaxEvent = MaxPayload - 64<<10
	// MaxResult is the largest answer of one hook, unless configured smaller.
	MaxResult = 1 << 20
	// MaxDepth is how deep one hook's answer may nest: less than JSON readers
	// bear, because on its way it is put into a reply, a beat and a record.
	MaxDepth = 1000
	// MaxToken is the longest subject token, escapes included.
	MaxToken = 128
	// MaxHeader is the longest value of one header.
	MaxHeader = 4 << 10
	// MaxReason is the longest error text that the fabric itself passes on.
	MaxReason = 4 << 10
)

// The times that every peer keeps to.
const (
	// BeatEvery is the interval of workers' beats, and of the beats that an
	// aggregator sends on a reply subject while a call is under way.
	BeatEvery = 250 * time.Millisecond
	// Missed is how many beats in a row make silence.
	Missed = 3
)

// Margin is what a hop keeps of the time left, so that it answers before the
// one that asked it gives up: 5 %, at least 20 ms, at most half.
func Margin(left time.Duration) time.Duration {
	return min(max(left/20, 20*time.Millisecond), left/2)
}

// Routing is what is known of an event without reading its body: from the
// subject and the headers. It is what the fabric trusts.
type Routing struct {
	Event   EventType
	Agent   string
	Session string
	Tool    string
	ID      string
	// Mute: the answer can not tell the agent anything, so that nothing that waits
	// for it is taken along.
	Mute bool
	// Trace is the place in a trace that it comes from; nil: none.
	Trace *trace.Context
}

// A Batch asks one worker to run some hooks of one config version for one
// event. It names no handlers, so that nobody who can publish one can choose
// what runs. It travels as headers; the body is the event's.
type Batch struct {
	Routing
	// Batch is the batch's own id; a re-run gets a new one.
	Batch string
	// Version is the config version that Hooks are indexes into.
	Version uint64
	// Fabric is whose version that is; a worker that follows another fabric has
	// no such version. Empty: the sender does not say.
	Fabric string
	// Hooks are in registration order.
	Hooks []int
	// Left is the time the worker has; it answers before that.
	Left time.Duration
	// Body is the event's JSON as the hooks before left it.
	Body []byte
	// Room does not travel: it is where whoever runs the batch, or reads the reply to
	// it, may put the outcomes. Nil: into memory of their own.
	Room []Outcome
}

// Status says what a worker did with a batch.
type Status string

// The statuses. StatusOK is absent on the wire.
const (
	StatusOK Status = ""
	// StatusBusy: no slot is free; nothing was run.
	StatusBusy Status = "busy"
	// StatusStale: the config version is not known here; nothing was run.
	StatusStale Status = "stale"
	// StatusDraining: the worker is stopping; nothing was run.
	StatusDraining Status = "draining"
	// StatusMismatch: the body names another tool than the header; nothing was run.
	StatusMismatch Status = "mismatch"
	// StatusMalformed: the body can not be read; nothing was run.
	StatusMalformed Status = "malformed"
)

// A BatchReply is a worker's answer to a batch: outcomes for a prefix of its
// hooks (all of them, or up to the one that ended the chain or could not be loaded).
type BatchReply struct {
	Worker   string    `json:"worker"`
	Status   Status    `json:"status,omitzero"`
	Error    string    `json:"error,omitzero"`
	Outcomes []Outcome `json:"outcomes,omitzero"`
}

// A Beat is what a worker says of itself every 250 ms.
type Beat struct {
	Pool   string `json:"pool"`
	Worker string `json:"worker"`
	// InFlight and Capacity count batches.
	InFlight int `json:"in_flight"`
	Capacity int `json:"capacity"`
	// Draining workers take no new batches.
	Draining bool `json:"draining,omitzero"`
	// Moving workers take none either, but do again in a moment: their server stops,
	// and they go to another one. That their connection closes is no news.
	Moving bool `json:"moving,omitzero"`
	// Batches are in hand, with the outcomes that are already there.
	Batches []BatchProgress `json:"batches,omitzero"`
	// Versions are the config versions held.
	Versions []uint64 `json:"versions,omitzero"`
	// LoadErrors are the handlers of the active version that could not be
	// loaded, by hook name.
	LoadErrors map[string]string `json:"load_errors,omitzero"`
	// Candidate is the version that is to become active, once it is loaded.
	Candidate *Candidate `json:"candidate,omitzero"`
}

// A Candidate is what a node says of a version that may become active.
type Candidate struct {
	Version uint64 `json:"version"`
	// Error is why the node can not use it at all; empty: it can.
	Error string `json:"error,omitzero"`
	// LoadErrors are the handlers that the node can not load, by hook name.
	LoadErrors map[string]string `json:"load_errors,omitzero"`
}

// FittingErrors are as many load errors, in the order of their hooks, as about
// room bytes hold. Long ones are cut, so that none takes the place of many.
func FittingErrors(all map[string]string, room int) map[string]string {
	most, some := room/64, make(map[string]string)
	for _, hook := range slices.Sorted(maps.Keys(all)) {
		said := all[hook]
		said = strings.ToValidUTF8(said[:min(len(said), most)], "")
		if room -= len(hook) + len(said) + 8; room < 0 {
			break
		}
		some[hook] = said
	}
	return some
}

// BatchProgress is a batch that a worker has in hand.
type BatchProgress struct {
	Batch    string    `json:"batch"`
	Outcomes []Outcome `json:"outcomes,omitzero"`
}

// An Ack says that the injections of the listed events were handed over.
type Ack struct {
	Fabric string   `json:"fabric"`
	Events []string `json:"events"`
}
