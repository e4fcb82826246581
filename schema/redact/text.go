package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Removed replaces a secret.
const Removed = "[removed]"

// maxText is how much of one string is kept, in bytes.
const maxText = 16 << 10

// secretText matches texts with the form of a secret. secretPair matches the value after
// a word such as password, in text, on command lines and in headers. secretFlag matches
// such a word in a list.
var (
	secretText = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)` +
		`|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{20,}|\bgithub_pat_[0-9A-Za-z_]{20,}|\bglpat-[0-9A-Za-z_-]{16,}` +
		`|\bxox[abeprs]-[0-9A-Za-z-]{10,}|\bsk-[0-9A-Za-z_-]{16,}|\bAIza[0-9A-Za-z_-]{30,}|\b[sr]k_live_[0-9A-Za-z]{16,}|\bnpm_[0-9A-Za-z]{30,}` +
		`|\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*`)
	secretPair = regexp.MustCompile(`(?i)((?:password|passwd|passphrase|(?:\b|_)pass|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)["']?\s*[:=]\s*` +
		`|--?(?:password|passwd|token|secret|api-key)[ =]+|\b(?:authorization|cookie)["']?\s*[:=]\s*(?:\w+ )?|\bbearer\s+|\bbasic\s+|\s(?:-u|--user)[ =]+[^\s:]+:)("[^"]*"?|'[^']*'?|[^\s"'&;,]+)`)
	secretFlag = regexp.MustCompile(`(?i)^(?:--?(?:password|passwd|passphrase|token|secret|api[_-]?key|access[_-]?key)|-u|--user|(?:authorization|cookie):)$`)
	secretURL  = regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*:)[^/\s@]+@`)
)

// Value returns a JSON value without likely secrets: members with the name of a secret, and
// texts with the form of one. It removes a value that is not valid JSON.
func Value(input jsontext.Value) jsontext.Value {
	var doc any
	if len(input) == 0 || schema.Unmarshal(input, &doc) != nil {
		return nil
	}
	b, err := schema.Marshal(cleaned(doc))
	if err != nil {
		return nil
	}
	return b
}

// cleaned returns v without secrets.
func cleaned(v any) any {
	switch v := v.(type) {
	case string:
		return Text(v)
	case []any:
		secret := false // the word before names a secret
		for i := range v {
			word, _ := v[i].(string)
			if secret {
				v[i] = Removed
			} else {
				v[i] = cleaned(v[i])
			}
			secret = !secret && secretFlag.MatchString(word)
		}
	case map[string]any:
		named, _ := v["name"].(string)
		keyed, _ := v["key"].(string)
		for name, value := range v {
			if secretName(name) || name == "value" && (secretName(named) || secretName(keyed)) {
				v[name] = Removed
			} else {
				v[name] = cleaned(value)
			}
		}
	}
	return v
}

// Text returns s without likely secrets, shortened to the limit of records.
func Text(s string) string {
	// Text far beyond the limit need not be searched, because no secret that begins
	// within the limit ends there.
	s = removed(s[:min(len(s), 2*maxText)])
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "… [cut]"
	}
	return strings.ToValidUTF8(s, "")
}

// Found reports whether s has a likely secret.
func Found(s string) bool { return removed(s) != s }

// removed returns s without likely secrets.
func removed(s string) string {
	if mayHold(s, textMarks()) {
		s = secretText.ReplaceAllString(s, Removed)
	}
	// Patterns that ignore case also match letters that are not ASCII, so texts with such
	// letters are always searched.
	if low, plain := lowered(s); !plain || mayHold(low, pairMarks()) {
		s = secretPair.ReplaceAllString(s, "${1}"+Removed)
	}
	if strings.Contains(s, "://") {
		s = secretURL.ReplaceAllString(s, "${1}"+Removed+"@")
	}
	return s
}

// textMarks and pairMarks are strings of which every match of secretText and secretPair
// contains one. Most texts contain none, and this check takes a hundredth of the time.
func textMarks() []string {
	return []string{"PRIVATE KEY", "AKIA", "ASIA", "gh", "github_pat_", "glpat-", "xox", "sk-", "AIza", "k_live_", "npm_", "eyJ"}
}

func pairMarks() []string {
	return []string{"pass", "secret", "token", "key", "credential", "authorization", "cookie", "bearer", "basic", "-u"}
}

func mayHold(s string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(s, mark) })
}

// lowered returns s in lower case, if it is ASCII.
func lowered(s string) (low string, plain bool) {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return "", false
		}
	}
	return strings.ToLower(s), true
}

// secretName reports whether a member of that name holds a secret.
func secretName(name string) bool {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	switch name {
	case "authorization", "cookie", "setcookie", "auth", "credential", "credentials", "passphrase", "pin", "otp":
		return true
	}
	for _, end := range []string{"password", "passwd", "secret", "token", "apikey", "accesskey", "privatekey", "secretkey"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
