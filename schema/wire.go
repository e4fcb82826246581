package schema

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// DeliverNone is the only value of [HeaderDeliver]. RestartNone is the only value of
// [HeaderRestart].
const (
	DeliverNone = "none"
	RestartNone = "none"
)

// SnappyFramed is the value of [HeaderEncoding] for data in Snappy's framing format.
const SnappyFramed = "x-snappy-framed"

// The headers of the wire. Every duration is a Go duration such as "1.5s".
const (
	// HeaderID is the event's UUIDv7.
	HeaderID = "Hook-Id"
	// HeaderAttempt counts the attempts to ask about the event, from 1.
	HeaderAttempt = "Hook-Attempt"
	// HeaderTool is the tool's name; absent for an event without a tool.
	HeaderTool = "Hook-Tool"
	// HeaderSession is the runtime's session.
	HeaderSession = "Hook-Session"
	// HeaderLeft is the remaining time as a duration, so that clocks need not agree.
	HeaderLeft = "Hook-Left"
	// HeaderDeliver is "none" if the agent cannot read anything from the answer; absent
	// otherwise.
	HeaderDeliver = "Hook-Deliver"
	// HeaderRestart is "none" if the agent is in the middle of a turn that its runtime cannot
	// restart; absent otherwise.
	HeaderRestart = "Hook-Restart"
	// HeaderAck lists the events whose injections the shim has delivered.
	HeaderAck = "Hook-Ack"
	// HeaderBatch is a batch's id.
	HeaderBatch = "Hook-Batch"
	// HeaderConfig is the config version of a batch's hook indexes. The fabric of that version
	// follows after a space.
	HeaderConfig = "Hook-Config"
	// HeaderHooks lists the indexes of a batch's hooks, separated by commas.
	HeaderHooks = "Hook-Hooks"
	// HeaderAgent and HeaderEvent pass the agent and event of the subject on to workers.
	HeaderAgent = "Hook-Agent"
	HeaderEvent = "Hook-Event"
	// HeaderBeat marks a message on a reply subject that says that work is still in progress.
	HeaderBeat = "Hook-Beat"
	// HeaderRetryAfter is the delay before the next attempt. It is in answers that refuse an
	// event because its agent exceeded a limit.
	HeaderRetryAfter = "Hook-Retry-After"
	// HeaderNumber counts a broker's record messages, from 1. HeaderDropped is how many records
	// the broker dropped before this message.
	HeaderNumber  = "Hook-Number"
	HeaderDropped = "Hook-Dropped"
	// HeaderEncoding is the encoding of the records in a message: [SnappyFramed]; absent: not
	// encoded.
	HeaderEncoding = "Hook-Encoding"
	// HeaderTraceparent and HeaderTracestate are the W3C Trace Context of the message; absent
	// without tracing.
	HeaderTraceparent = "traceparent"
	HeaderTracestate  = "tracestate"
)

// The size limits that every peer applies. A peer rejects larger data with an error and never
// truncates it silently.
const (
	// MaxPayload is the largest message on the bus, in bytes.
	MaxPayload = 8 << 20
	// MaxEvent is the largest event body, in bytes. It leaves space for headers.
	MaxEvent = MaxPayload - 64<<10
	// MaxResult is the largest answer of one hook, in bytes, unless the configuration sets a
	// smaller limit.
	MaxResult = 1 << 20
	// MaxDepth is how deep a hook's answer may nest. It is below the limit of JSON readers,
	// because replies, beats and records nest the answer further.
	MaxDepth = 1000
	// MaxToken is the longest subject token in bytes, escapes included.
	MaxToken = 128
	// MaxHeader is the longest value of one header, in bytes.
	MaxHeader = 4 << 10
	// MaxReason is the longest error text that the fabric passes on, in bytes.
	MaxReason = 4 << 10
)

// The intervals that every peer uses.
const (
	// BeatEvery is the interval of workers' beats. Aggregators also send beats at this interval
	// on the reply subject of a call in progress.
	BeatEvery = 250 * time.Millisecond
	// Missed is how many missed beats in a row count as silence.
	Missed = 3
)

// RuntimeTimeout is how long an agent's runtime waits for a hook that 'agentshim install'
// wrote, unless --timeout sets another value.
const RuntimeTimeout = time.Minute

// RuntimeFor returns how long a runtime must wait so that a hook can use its whole timeout.
// Every hop keeps a [Margin], together a fifth of the result.
func RuntimeFor(hook time.Duration) time.Duration { return hook * 5 / 4 }

// Margin returns the part of the remaining time that a hop reserves, so that it answers before
// its caller gives up: 5 %, at least 20 ms, at most half.
func Margin(left time.Duration) time.Duration {
	return min(max(left/20, 20*time.Millisecond), left/2)
}

// Routing is what the subject and the headers say about an event. The fabric trusts it, not the
// body.
type Routing struct {
	Event   EventType
	Agent   string
	Session string
	Tool    string
	ID      string
	// Mute reports that the agent cannot read anything from the answer, so that the fabric
	// delivers no items with it.
	Mute bool
	// MidTurn reports that the answer cannot restart the agent's turn, so that the fabric
	// delivers no items that need a restart.
	MidTurn bool
	// Trace is the trace position of the sender; nil: not traced.
	Trace *trace.Context
}

// A Batch asks one worker to run some hooks of one config version for one event. It refers to
// hooks by index and names no handlers. A client that can publish a batch therefore cannot
// choose what runs. A batch travels as headers; its body is the event's.
type Batch struct {
	Routing
	// Batch is the batch's own id. A second run has a new one.
	Batch string
	// Version is the config version that Hooks are indexes into.
	Version uint64
	// Fabric is the fabric of that version. A worker of another fabric does not have the
	// version. Empty: the sender does not say.
	Fabric string
	// Hooks lists hook indexes in registration order.
	Hooks []int
	// Left is the time that the worker has. It answers before the time ends.
	Left time.Duration
	// Body is the event's JSON, with the rewrites of earlier hooks.
	Body []byte
	// Room is memory for the outcomes, to avoid an allocation. It does not travel. Nil:
	// allocate.
	Room []Outcome
}

// Status says what a worker did with a batch.
type Status string

// The statuses. StatusOK is absent on the wire.
const (
	StatusOK Status = ""
	// StatusBusy means that all slots are in use. The worker ran nothing.
	StatusBusy Status = "busy"
	// StatusStale means that the worker does not have the config version. It ran nothing.
	StatusStale Status = "stale"
	// StatusDraining means that the worker is stopping. It ran nothing.
	StatusDraining Status = "draining"
	// StatusMismatch means that the body names another tool than the header. The worker ran
	// nothing.
	StatusMismatch Status = "mismatch"
	// StatusMalformed means that the worker cannot read the body. It ran nothing.
	StatusMalformed Status = "malformed"
)

// A BatchReply is a worker's answer to a batch. It has outcomes for all hooks, or up to the
// hook that ended the chain or could not be loaded.
type BatchReply struct {
	Worker   string    `json:"worker"`
	Status   Status    `json:"status,omitzero"`
	Error    string    `json:"error,omitzero"`
	Outcomes []Outcome `json:"outcomes,omitzero"`
}

// A Beat is a worker's status message, sent every 250 ms.
type Beat struct {
	Pool   string `json:"pool"`
	Worker string `json:"worker"`
	// InFlight and Capacity count batches.
	InFlight int `json:"in_flight"`
	Capacity int `json:"capacity"`
	// Draining reports that the worker accepts no new batches.
	Draining bool `json:"draining,omitzero"`
	// Moving reports that the worker's server is stopping, and that the worker is connecting to
	// another one. It accepts no batches until then. The end of its connection does not mean
	// that the worker is lost.
	Moving bool `json:"moving,omitzero"`
	// Batches lists the batches in progress, with the outcomes so far.
	Batches []BatchProgress `json:"batches,omitzero"`
	// Versions lists the config versions that the worker has loaded.
	Versions []uint64 `json:"versions,omitzero"`
	// LoadErrors maps hook names to why the worker cannot load the handler, for the active
	// version.
	LoadErrors map[string]string `json:"load_errors,omitzero"`
	// Candidate is the version proposed as the next active one, once the worker has tried to
	// load it.
	Candidate *Candidate `json:"candidate,omitzero"`
}

// A Candidate is a node's report about a version proposed as the next active one.
type Candidate struct {
	Version uint64 `json:"version"`
	// Error says why the node cannot use the version at all; empty: it can.
	Error string `json:"error,omitzero"`
	// LoadErrors maps hook names to why the node cannot load the handler.
	LoadErrors map[string]string `json:"load_errors,omitzero"`
}

// FittingErrors returns as many load errors as fit in about room bytes, in the order of hook
// names. It shortens long ones, so that one error cannot displace many.
func FittingErrors(all map[string]string, room int) map[string]string {
	most, some := room/64, make(map[string]string)
	for _, hook := range slices.Sorted(maps.Keys(all)) {
		text := all[hook]
		text = strings.ToValidUTF8(text[:min(len(text), most)], "")
		if room -= len(hook) + len(text) + 8; room < 0 {
			break
		}
		some[hook] = text
	}
	return some
}

// BatchProgress is a batch that a worker is running.
type BatchProgress struct {
	Batch    string    `json:"batch"`
	Outcomes []Outcome `json:"outcomes,omitzero"`
}

// An Ack acknowledges the delivery of the injections of the listed events.
type Ack struct {
	Fabric string   `json:"fabric"`
	Events []string `json:"events"`
}
