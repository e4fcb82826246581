package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// thorough is [Text] of a short text without the fast checks.
func thorough(s string) string {
	s = secretText.ReplaceAllString(s, Removed)
	s = secretPair.ReplaceAllString(s, "${1}"+Removed)
	s = secretURL.ReplaceAllString(s, "${1}"+Removed+"@")
	return strings.ToValidUTF8(s, "")
}

// The fast checks do not change the result.
func TestFastChecksFindTheSame(t *testing.T) {
	pieces := []string{
		"-----BEGIN ", "RSA ", "PRIVATE KEY-----", "-----END PRIVATE KEY-----", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE",
		"ghp_0123456789012345678901", "github_pat_0123456789012345678901", "glpat-01234567890123456789", "xoxb-0123456789", "sk-0123456789abcdef0",
		"AIza0123456789012345678901234567890123", "rk_live_0123456789abcdef", "npm_0123456789012345678901234567890", "eyJ0123456789.0123456789.x",
		"password", "Passwd", "passphrase", "PASS", "_pass", "secret", "Token", "api-key", "access_key", "PrivateKey", "credentials", "Authorization", "cookie",
		"Bearer ", "BASIC ", " -u ", " --user=", "--api-key ", "=", ": ", ":", "'x y'", "\"x", "me:", "https://", "me:pw@host", "pa\u017f\u017fword=", "to\u212aen=", "word", " ", "\n", "é", "\xff",
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(rt, "pieces"), "")
		if got, want := Text(s), thorough(s); got != want {
			rt.Errorf("of %q is left %q, and %q without looking first", s, got, want)
		}
	})
}
