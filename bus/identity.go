package bus

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/schema"
)

// ErrRefused means that the bus rejects the client's credentials or certificate, or the client
// the server's. The errors of [Connect] wrap it if a file cannot be read, if credentials expired
// or were revoked, or if one side does not trust a certificate. Trying again does not help.
var ErrRefused = errors.New("the bus refuses this connection")

// A refusal is an [ErrRefused] with a message of its own.
type refusal struct{ error }

func (r refusal) Is(target error) bool { return target == ErrRefused }
func (r refusal) Unwrap() error        { return r.error }

// inboxPrefix begins the inboxes of a user; the user's public key follows.
const inboxPrefix = "_INBOX_"

// InboxOf returns the prefix of the inboxes of the user with the public key, without a final
// dot. No other user may subscribe there.
func InboxOf(key string) string { return inboxPrefix + key }

// IsInbox reports whether an answer may be sent to subject. The requester names that subject,
// and the responder may publish to more subjects than the requester. An answer to the subject
// of a request would therefore be a request in the name of a broker.
//
// IsInbox cannot check whose inbox it is, because a message does not name its sender. Only
// brokers learn the subjects of a user's inboxes, and they cannot be guessed.
func IsInbox(subject string) bool {
	// The last two are the forms of an inbox between accounts and between clusters. The server
	// rejects requests that name them.
	return slices.ContainsFunc([]string{"_INBOX.", inboxPrefix, "_R_.", "_GR_."}, func(prefix string) bool { return strings.HasPrefix(subject, prefix) })
}

// InboxName returns the part of an inbox's subject that is common to all inboxes of a user, or
// of a connection if clients do not identify themselves.
func InboxName(subject string) string {
	name, rest, _ := strings.Cut(subject, ".")
	if strings.HasPrefix(name, inboxPrefix) && len(name) > len(inboxPrefix) {
		return name
	}
	of, _, _ := strings.Cut(rest, ".")
	return name + "." + of
}

// InboxKey returns the public key in a name of [InboxName]; empty: the name is that of a
// connection.
func InboxKey(name string) string {
	key, _ := strings.CutPrefix(name, inboxPrefix)
	if key == name {
		return ""
	}
	return key
}

// MaxCreds bounds a credentials file, and the CONNECT line of a client that uses it. The default
// of servers is 4 KiB, which is too short for the credentials of a host with more than a dozen agents.
const MaxCreds = 256 << 10

// claims are the parts of a user's credentials that the client reads. Only the server checks them.
type claims struct {
	Key     string `json:"sub"`
	Name    string `json:"name"`
	Issued  int64  `json:"iat"`
	Expires int64  `json:"exp"`
	NATS    struct {
		Publish   subjects `json:"pub"`
		Subscribe subjects `json:"sub"`
	} `json:"nats"`
}

// subjects are the subjects that a user may use.
type subjects struct {
	Allow []string `json:"allow"`
}

// readClaims reads the claims in a credentials file.
func readClaims(file string) (claims, error) {
	var c claims
	info, err := os.Stat(file)
	if err == nil && info.Size() > MaxCreds {
		err = fmt.Errorf("it has %d bytes", info.Size())
	}
	if err == nil {
		if err := chown.Private(file); err != nil {
			return c, err
		}
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return c, fmt.Errorf("cannot read the credentials file %s: %w; name the file that `broker creds add` wrote", file, err)
	}
	token, err := nkeys.ParseDecoratedJWT(data)
	if err == nil {
		c, err = parseClaims(token)
	}
	if err != nil {
		return c, fmt.Errorf("%s has no credentials of a NATS user: %w; name the file that `broker creds add` wrote", file, err)
	}
	return c, nil
}

// CredsTimes returns when the credentials in a file were made and when they expire; zero: never,
// or file is empty.
func CredsTimes(file string) (made, end time.Time, err error) {
	if file == "" {
		return made, end, nil
	}
	c, err := readClaims(file)
	if err != nil || c.Expires == 0 {
		return made, end, err
	}
	return time.Unix(c.Issued, 0), time.Unix(c.Expires, 0), nil
}

// CredsAgent returns the first agent of the credentials in a file; empty: they name no agent, or
// cannot be read.
func CredsAgent(file string) string {
	if file == "" {
		return ""
	}
	c, err := readClaims(file)
	if err != nil {
		return ""
	}
	for _, subject := range c.NATS.Publish.Allow {
		if verb, agent, err := ParseControlSubject(subject); err == nil && verb == schema.VerbRecord {
			return agent
		}
	}
	return ""
}

func parseClaims(token string) (c claims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, errors.New("the file has no JWT")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = schema.Unmarshal(body, &c)
	}
	if err == nil && !nkeys.IsValidPublicUserKey(c.Key) {
		err = errors.New("the JWT names no user key")
	}
	return c, err
}

// inbox returns the prefix of the user's own inboxes if the user may subscribe there; empty: use
// the default. Credentials of other NATS deployments may not permit it.
func (c *claims) inbox() string {
	if own := InboxOf(c.Key); slices.Contains(c.NATS.Subscribe.Allow, own+".>") {
		return own
	}
	return ""
}

// identify returns the options with the client's credentials.
func (o *Options) identify() ([]nats.Option, error) {
	var opts []nats.Option
	if o.Creds != "" {
		c, err := readClaims(o.Creds)
		if err != nil {
			return nil, refusal{err}
		}
		opts = append(opts, nats.UserCredentials(o.Creds))
		if own := c.inbox(); own != "" {
			opts = append(opts, nats.CustomInboxPrefix(own))
		}
	}
	if o.User != "" {
		opts = append(opts, nats.UserInfo(o.User, o.Password))
	}
	if o.JWT != "" {
		opts = append(opts, nats.UserJWTAndSeed(o.JWT, o.Seed))
	}
	return opts, nil
}

// rejected returns the error for a connection whose credentials the bus rejects; nil: err has
// another cause.
func (o *Options) rejected(err error, where string) error {
	if !isRejection(err) {
		return nil
	}
	role := cmp.Or(o.Role, "operator")
	if o.Creds == "" {
		return fmt.Errorf("%w at %s: this fabric requires credentials; create a file with `broker creds add %s NAME` and name it with --creds or HOOKFABRIC_CREDS: %w",
			ErrRefused, where, role, err)
	}
	clock := ""
	if c, err2 := readClaims(o.Creds); err2 == nil && c.Expires > 0 {
		end := time.Unix(c.Expires, 0)
		if !time.Now().Before(end) {
			return fmt.Errorf("%w at %s: the credentials of %s in %s expired at %s; make new ones with `broker creds add %s NAME`: %w",
				ErrRefused, where, c.Name, o.Creds, end.UTC().Format(time.RFC3339), role, err)
		}
		clock = fmt.Sprintf(" (or expired at %s, if the clock of this machine is behind)", end.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w at %s: it does not take the credentials in %s; they were revoked, or are of another fabric%s, or the broker refuses them for 10s because they sent too much: `broker creds list` tells, and `broker creds add %s NAME` makes new ones: %w",
		ErrRefused, where, o.Creds, clock, role, err)
}

// isRejection reports whether the bus rejects the client's credentials. During a connect the
// client library has a sentinel for one such error only, and passes the text of the others.
func isRejection(err error) bool {
	text := strings.ToLower(err.Error())
	return errors.Is(err, nats.ErrAuthorization) || strings.Contains(text, nats.AUTHENTICATION_EXPIRED_ERR) || strings.Contains(text, nats.AUTHENTICATION_REVOKED_ERR)
}

// MayAsk reports whether the credentials in a file allow events of the agent. It is true for
// credentials that name no agent, and for those that cannot be read.
func MayAsk(file, agent string) bool {
	c, err := readClaims(file)
	name, terr := Token(agent)
	if file == "" || err != nil || terr != nil {
		return true
	}
	asks := false
	for _, subject := range c.NATS.Publish.Allow {
		if rest, ok := strings.CutPrefix(subject, eventPrefix); ok {
			asks = true
			if of, _, _ := strings.Cut(rest, "."); of == name || of == "*" {
				return true
			}
		}
	}
	return !asks
}
