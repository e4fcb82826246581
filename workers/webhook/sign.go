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
	// HeaderTimestamp has the time of the signature, in seconds since 1970.
	HeaderTimestamp = "Hook-Timestamp"
	// HeaderSignature is "v1=" and, in hex, the HMAC-SHA256 of the timestamp, a
	// dot and the body.
	HeaderSignature = "Hook-Signature"
)

// MinKey is the minimum length of a key in bytes. Shorter keys can be guessed.
const MinKey = 16

// scheme is the name of the signature scheme.
const scheme = "v1="

// key returns the key of a hook with sign; nil: the hook does not sign.
func (v *variables) key(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	if !isVariable(name) {
		return nil, errors.New("sign is not the name of an environment variable; write the name of the variable with the key, such as POLICY_KEY, not the key")
	}
	value, err := v.value(name)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if len(value) < MinKey {
		return nil, fmt.Errorf("sign: the key in the worker's environment variable %s has %d bytes; use a key of at least %d", name, len(value), MinKey)
	}
	return []byte(value), nil
}

// sign adds the headers that prove to the server that the sender has key.
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

// Verify checks the signature of a request, for servers of hooks in Go. It returns nil if a
// worker signed these headers and the complete body with key, and the time of the signature
// differs from now by at most tolerance. An attacker can replay a request within that time.
// If this matters, the server must remember the Hook-Ids of that time.
func Verify(header http.Header, body, key []byte, now time.Time, tolerance time.Duration) error {
	if len(key) < MinKey {
		return fmt.Errorf("the key has %d bytes; use the worker's key, of at least %d", len(key), MinKey)
	}
	stamps, signatures := header.Values(HeaderTimestamp), header.Values(HeaderSignature)
	if len(stamps) != 1 || len(signatures) != 1 {
		return fmt.Errorf("the request is not signed: it must have the headers %s and %s, each once", HeaderTimestamp, HeaderSignature)
	}
	digits, known := strings.CutPrefix(signatures[0], scheme)
	if !known {
		return fmt.Errorf("the request's %s does not begin with %s, the only known signature scheme", HeaderSignature, scheme)
	}
	claimed, err := hex.DecodeString(digits)
	if err != nil || !hmac.Equal(claimed, digest(stamps[0], body, key)) {
		return errors.New("the request's signature does not match its body, its time and this key")
	}
	seconds, err := strconv.ParseInt(stamps[0], 10, 64)
	if err != nil {
		return fmt.Errorf("the request's %s is not a number of seconds", HeaderTimestamp)
	}
	if off := now.Sub(time.Unix(seconds, 0)); off.Abs() > tolerance {
		return fmt.Errorf("the time of the signature differs by %s from this machine's clock; the limit is %s", off.Abs(), tolerance)
	}
	return nil
}
