package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// historyScheme begins a history_ref that names parts in the fabric's store.
const historyScheme = "objects:"

// HistoryLost begins a history_ref that says why the conversation before the
// event's own part of it could not be stored: hooks that need it fail.
const HistoryLost = "lost:"

// HistoryMissing is in the error of a hook that could not have the conversation
// that it needs. The agent's side asks then whether the parts are still stored.
const HistoryMissing = "the conversation that it needs can not be had"

// The bounds of a stored conversation.
const (
	// MaxHistoryParts bounds the parts that a ref names, MaxHistory their bytes together.
	MaxHistoryParts = 512
	MaxHistory      = 64 << 20
	// HistoryPart is about how large a part is: what is shorter travels in the event.
	HistoryPart = 64 << 10
)

// The control verbs about parts of conversations.
const (
	// VerbKeep puts one into the fabric's store.
	VerbKeep = "keep"
	// VerbPart reads one.
	VerbPart = "part"
)

// MaxPart bounds one part: what a message of a conversation has more is the next
// part's.
const MaxPart = 1 << 20

// A KeepRequest puts a part of a conversation of the subject's agent into the
// fabric's store, or asks whether it is there.
type KeepRequest struct {
	// Data is the part, in base64, of at most [MaxPart] bytes.
	Data []byte `json:"data,omitzero"`
	// Digest and Size without Data only ask.
	Digest string `json:"digest,omitzero"`
	Size   int64  `json:"size,omitzero"`
}

// KeepAnswer says how the part is called.
type KeepAnswer struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	// Known: it is there, for an hour at least. What was put always is; what was
	// only asked for is to be put if it is not.
	Known bool `json:"known,omitzero"`
}

// A PartRequest asks for a part of a conversation, or for what of it comes after the
// offset, which a [FetchAnswer] has. Who asks knows its digest from an event.
type PartRequest struct {
	Digest string `json:"digest"`
	Offset int64  `json:"offset,omitzero"`
}

// HistoryRef is the history_ref that names parts in the fabric's store. Put
// together in order, they are the JSON of messages, each with a line feed behind
// it; with the event's own history behind them, they are the conversation.
func HistoryRef(parts []Object) string {
	if len(parts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(historyScheme)
	for i, p := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(p.Digest + "/" + strconv.FormatInt(p.Size, 10))
	}
	return b.String()
}

// HistoryParts are the parts that a history_ref names; none: it names none, but a
// file or nothing.
func HistoryParts(ref string) ([]Object, error) {
	if why, lost := strings.CutPrefix(ref, HistoryLost); lost {
		return nil, fmt.Errorf("the conversation could not be stored: %s", why)
	}
	list, ok := strings.CutPrefix(ref, historyScheme)
	if !ok {
		return nil, nil
	}
	var parts []Object
	var sum int64
	for one := range strings.SplitSeq(list, ",") {
		digest, size, _ := strings.Cut(one, "/")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 1 || n > MaxPart || !isDigest(digest) {
			return nil, fmt.Errorf("history_ref has the part %.80q; a part is sha256-<64 hex digits>/<bytes>, of at most %d bytes", one, MaxPart)
		}
		if sum += n; sum > MaxHistory || len(parts) == MaxHistoryParts {
			return nil, fmt.Errorf("history_ref names more than %d parts or %d bytes", MaxHistoryParts, MaxHistory)
		}
		parts = append(parts, Object{Digest: digest, Size: n})
	}
	return parts, nil
}

// HistoryFile reports whether a history_ref is a file on the agent's machine.
func HistoryFile(ref string) bool {
	return ref != "" && !strings.HasPrefix(ref, historyScheme) && !strings.HasPrefix(ref, HistoryLost)
}

// CheckHistory refuses what is not the JSON of messages, each with a line feed
// behind it.
func CheckHistory(lines []byte) error {
	for len(lines) > 0 {
		line, rest, ended := bytes.Cut(lines, []byte("\n"))
		switch {
		case !ended:
			return errors.New("its last message is cut off")
		case jsontext.Value(line).Kind() != '{' || !jsontext.Value(line).IsValid(jsontext.AllowInvalidUTF8(true)):
			return errors.New("it has a line that is not a message")
		case depth(line) > MaxDepth:
			return fmt.Errorf("it has a message that nests deeper than %d levels", MaxDepth)
		}
		lines = rest
	}
	return nil
}

// isDigest reports whether s names an object.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256-")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
