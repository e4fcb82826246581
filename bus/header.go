package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/nats-io/nats.go"
)

// The limits of headers.
const (
	// MaxAttempt is the highest attempt that is accepted.
	MaxAttempt = 100
	// MaxLeft is the longest time left that is accepted.
	MaxLeft = 24 * time.Hour
	// MaxAcks is how many events one event message may acknowledge; more go into a control
	// request.
	MaxAcks = 100
	// MaxHooks is how many hooks one batch may have.
	MaxHooks = 10_000

	// maxHooksHeader bounds a batch's list of hooks, so that all headers fit beside a body of
	// schema.MaxEvent bytes.
	maxHooksHeader = 52 << 10
)

// escapeValue writes control bytes, bytes outside ASCII, % and blanks at either end as %XX in
// upper-case hex, because header values cannot hold them. Most values are returned unchanged.
func escapeValue(s string) string { return escapeBytes(s, '%', special) }

func special(s string, i int) bool {
	c := s[i]
	return c < ' ' || c >= 0x7f || c == '%' || c == ' ' && (i == 0 || i == len(s)-1)
}

var errEscape = errors.New("a % without two hex digits; write a percent sign as %25")

// unescapeValue is the inverse of escapeValue. It also accepts lower-case hex, needless escapes
// and raw bytes outside ASCII, as other libraries write them. All peers compare decoded values.
func unescapeValue(s string) (string, error) {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s, nil
	}
	b := make([]byte, i, len(s))
	copy(b, s)
	for ; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+3 > len(s) {
			return "", errEscape
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", errEscape
		}
		b = append(b, byte(c))
		i += 2
	}
	return string(b), nil
}

// A reader reads the headers of one message. It remembers the first fault and continues, so
// that the other fields of a malformed message are available.
type reader struct {
	header nats.Header
	err    error
}

func (r *reader) fault(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// raw returns the only value of a header; empty: the header is missing or faulty.
func (r *reader) raw(key string, limit int) string {
	values := r.header[key]
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1:
		r.fault("the message has the header %s %d times; send it once", key, len(values))
		return ""
	case len(values[0]) > limit:
		r.fault("the header %s has %d bytes; at most %d are allowed", key, len(values[0]), limit)
		return ""
	}
	return values[0]
}

func (r *reader) required(key, what string) string {
	v := r.raw(key, schema.MaxHeader)
	if v == "" {
		r.fault("the header %s is missing; send %s in it", key, what)
	}
	return v
}

// text returns the unescaped value of a header.
func (r *reader) text(key string) string {
	v, err := unescapeValue(r.raw(key, schema.MaxHeader))
	if err != nil {
		r.fault("the header %s has %w", key, err)
	}
	return v
}

// eventID returns the event's UUID in lower case.
func (r *reader) eventID() string {
	v := r.required(schema.HeaderID, "the event's UUID")
	if v == "" {
		return ""
	}
	id, ok := CanonicalUUID(v)
	if !ok {
		r.fault("the header %s is %.64q, which is not a UUID; send one such as 0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182", schema.HeaderID, v)
	}
	return id
}

// left returns the time left.
func (r *reader) left() time.Duration {
	v := r.required(schema.HeaderLeft, `the time left, such as "29.5s",`)
	if v == "" {
		return 0
	}
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		r.fault("the header %s is %.64q, which is not a duration; send one such as \"29.5s\"", schema.HeaderLeft, v)
	case d <= 0:
		r.fault("the header %s is %q; send a duration above zero", schema.HeaderLeft, v)
	case d > MaxLeft:
		r.fault("the header %s is %q; send at most %v", schema.HeaderLeft, v, MaxLeft)
	default:
		return d
	}
	return 0
}

// trace returns the trace position of the message; nil: it has no valid one. An invalid one is
// no fault of the message, because no decision depends on it.
func (r *reader) trace() *trace.Context {
	parent, state := r.header[schema.HeaderTraceparent], r.header[schema.HeaderTracestate]
	switch {
	case len(parent) != 1:
		return nil
	case len(state) != 1:
		return trace.Parse(parent[0], "")
	}
	return trace.Parse(parent[0], state[0])
}

// CanonicalUUID returns s in lower case if it is a UUID with its four hyphens.
func CanonicalUUID(s string) (string, bool) {
	return strings.ToLower(s), len(s) == len(uuid.Nil.String()) && uuid.Validate(s) == nil
}
