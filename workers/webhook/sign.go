package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed request.
const (
	// HeaderTimestamp is when the request was signed, in seconds since 1970.
	HeaderTimestamp = "Hook-Timestamp"
	// HeaderSignature is "v1=" and, in hex, the HMAC-SHA256 of the timestamp, a
	// dot and the body.
	HeaderSignature = "Hook-Signature"
)

// MinKey is how many bytes a key has at least: shorter ones can be guessed.
const MinKey = 16

// scheme is how requests are signed. Another way will have another name.
const scheme = "v1="

// key is the key of a hook that signs; nil: it does not.
func (v *variables) key(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	if !isVariable(name) {
		return nil, errors.New("sign is no name of an environment variable; write the name of the one that holds the key, such as POLICY_KEY, and not the key")
	}
	value, err := v.value(name)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if len(value) < MinKey {
		return nil, fmt.Errorf("sign: the key in the worker's environment variable %s has %d bytes; put one of at least %d there", name, len(value), MinKey)
	}
	return []byte(value), nil
}

// sign adds the headers by which a server knows that body comes from who has key.
func sign(header http.Header, body, key []byte, now time.Time) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	header[HeaderTimestamp] = []string{stamp}
	header[HeaderSignature] = []string{scheme + hex.EncodeToString(digest(stamp, body, key))}
}

func digest(stamp string, body, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// Verify is for servers of hooks that are written in Go: it returns nil if the
// request with these headers and this whole body was signed with key, not
// longer ago than tolerance, nor further in the future. Within that time a
// request can be played back; a server for which that matters remembers the
// Hook-Ids it has seen for as long.
func Verify(header http.Header, body, key []byte, now time.Time, tolerance time.Duration) error {
	if len(key) < MinKey {
		return fmt.Errorf("the key has %d bytes; use the one that the worker signs with, of at least %d", len(key), MinKey)
	}
	stamps, signatures := header.Values(HeaderTimestamp), header.Values(HeaderSignature)
	if len(stamps) != 1 || len(signatures) != 1 {
		return fmt.Errorf("the request is not signed: it must have the headers %s and %s, each once", HeaderTimestamp, HeaderSignature)
	}
	digits, known := strings.CutPrefix(signatures[0], scheme)
	if !known {
		return fmt.Errorf("the request's %s does not begin with %s, the only way to sign that is known", HeaderSignature, scheme)
	}
	claimed, err := hex.DecodeString(digits)
	if err != nil || !hmac.Equal(claimed, digest(stamps[0], body, key)) {
		return errors.New("the request's signature is not that of its body and its time with this key")
	}
	seconds, err := strconv.ParseInt(stamps[0], 10, 64)
	if err != nil {
		return fmt.Errorf("the request's %s is no number of seconds", HeaderTimestamp)
	}
	if off := now.Sub(time.Unix(seconds, 0)); off.Abs() > tolerance {
		return fmt.Errorf("the request was signed %s away from this machine's clock; at most %s is tolerated", off.Abs(), tolerance)
	}
	return nil
}
