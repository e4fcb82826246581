package webhook

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestVerifyAcceptsOnlyValidSignatures(t *testing.T) {
	const body = `{"hook_type":"PreToolUse"}`
	at := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		change func(http.Header)
		body   string
		key    string
		now    time.Time
		err    string
	}{
		"as it was signed":                 {},
		"a minute later":                   {now: at.Add(time.Minute)},
		"a minute earlier":                 {now: at.Add(-time.Minute)},
		"too late":                         {now: at.Add(61 * time.Second), err: "differs by 1m1s"},
		"too early":                        {now: at.Add(-61 * time.Second), err: "differs by 1m1s"},
		"with another body":                {body: body + " ", err: "signature does not match its body"},
		"with another key":                 {key: testKey + "!", err: "signature does not match its body"},
		"with an empty key":                {key: "-", err: "the key has 1 bytes"},
		"with another time":                {change: func(h http.Header) { h.Set(HeaderTimestamp, "1800000001") }, err: "its time"},
		"without a time":                   {change: func(h http.Header) { h.Del(HeaderTimestamp) }, err: "is not signed"},
		"without a signature":              {change: func(h http.Header) { h.Del(HeaderSignature) }, err: "is not signed"},
		"with two signatures":              {change: func(h http.Header) { h.Add(HeaderSignature, "v1=00") }, err: "each once"},
		"signed in another way":            {change: func(h http.Header) { h.Set(HeaderSignature, "v2=00") }, err: "does not begin with v1="},
		"with a signature that is no hex":  {change: func(h http.Header) { h.Set(HeaderSignature, "v1=xx") }, err: "signature does not match"},
		"with an empty signature":          {change: func(h http.Header) { h.Set(HeaderSignature, "v1=") }, err: "signature does not match"},
		"with the beginning of the right":  {change: func(h http.Header) { h.Set(HeaderSignature, h.Get(HeaderSignature)[:len("v1=")+16]) }, err: "signature does not match"},
		"signed at no time":                {change: func(h http.Header) { resign(h, body, "soon") }, err: "is not a number of seconds"},
		"signed at the end of time":        {change: func(h http.Header) { resign(h, body, "9223372036854775807") }, err: "the limit is"},
		"signed long before the beginning": {change: func(h http.Header) { resign(h, body, "-9223372036854775808") }, err: "the limit is"},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			sign(header, []byte(body), []byte(testKey), at)
			if c.change != nil {
				c.change(header)
			}
			signed, key, now := body, testKey, at
			if c.body != "" {
				signed = c.body
			}
			if c.key != "" {
				key = c.key
			}
			if !c.now.IsZero() {
				now = c.now
			}
			err := Verify(header, []byte(signed), []byte(key), now, time.Minute)
			if c.err != "" {
				expectError(t, err, c.err)
			} else if err != nil {
				t.Error(err)
			}
			if err != nil && strings.Contains(err.Error(), testKey) {
				t.Errorf("the error contains the key: %v", err)
			}
		})
	}
}

// resign signs a stamp that no worker would sign.
func resign(h http.Header, body, stamp string) {
	h.Set(HeaderTimestamp, stamp)
	h.Set(HeaderSignature, scheme+hex.EncodeToString(digest(stamp, []byte(body), []byte(testKey))))
}

// TestTheSignatureMatchesTheDocs checks what servers in other languages rely on. The
// figure was made with openssl dgst -sha256 -hmac.
func TestTheSignatureMatchesTheDocs(t *testing.T) {
	header := http.Header{}
	sign(header, []byte("{}"), []byte(testKey), time.Unix(1_800_000_000, 999))
	if got := header.Get(HeaderTimestamp) + " " + header.Get(HeaderSignature); got != "1800000000 v1=1313ae9c874eb1a0868ad0b65f841c4243c23fdcfad69a3ada227726fad9960e" {
		t.Error(got)
	}
}
