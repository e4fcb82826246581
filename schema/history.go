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

// HistoryLost is the prefix of a history_ref whose earlier messages could not be stored. The
// rest of the history_ref says why. Hooks that need the conversation fail.
const HistoryLost = "lost:"

// HistoryMissing is part of the error of a hook that could not read its conversation. The
// agent's side then asks whether the fabric still stores the parts.
const HistoryMissing = "the conversation that it needs cannot be had"

// The limits of a stored conversation.
const (
	// MaxHistoryParts is how many parts a history_ref may name. MaxHistory limits their total
	// size, in bytes.
	MaxHistoryParts = 512
	MaxHistory      = 64 << 20
	// HistoryPart is the approximate size of one part. A shorter conversation travels in the
	// event.
	HistoryPart = 64 << 10
)

// The control verbs about parts of conversations.
const (
	// VerbKeep stores a part.
	VerbKeep = "keep"
	// VerbPart reads a part.
	VerbPart = "part"
)

// MaxPart limits one part, in bytes. A longer message continues in the next part.
const MaxPart = 1 << 20

// A KeepRequest stores a part of a conversation of the subject's agent, or asks whether the
// fabric stores it.
type KeepRequest struct {
	// Data is the part, in base64. It has at most [MaxPart] bytes.
	Data []byte `json:"data,omitzero"`
	// Digest and Size without Data ask whether the fabric stores the part.
	Digest string `json:"digest,omitzero"`
	Size   int64  `json:"size,omitzero"`
}

// KeepAnswer names the part.
type KeepAnswer struct {
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	// Known reports that the fabric stores the part for at least an hour. It is always true
	// after Data. If a question returns false, send the part.
	Known bool `json:"known,omitzero"`
}

// A PartRequest asks for the part of a conversation with this digest, from the offset on. The
// answer is a [FetchAnswer]. The client knows the digest from an event's history_ref.
type PartRequest struct {
	Digest string `json:"digest"`
	Offset int64  `json:"offset,omitzero"`
}

// HistoryRef returns the history_ref that names parts in the fabric's store. The parts in order
// hold messages as JSON, one per line. The event's own history follows them.
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

// HistoryParts returns the parts that a history_ref names. It returns no parts if ref is empty
// or names a file.
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

// HistoryFile reports whether ref names a file on the agent's machine.
func HistoryFile(ref string) bool {
	return ref != "" && !strings.HasPrefix(ref, historyScheme) && !strings.HasPrefix(ref, HistoryLost)
}

// CheckHistory returns an error unless lines holds messages as JSON, each with a line feed at
// its end.
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

// isDigest reports whether s is the digest of an object.
func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256-")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}
