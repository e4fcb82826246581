package bus

import (
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

// ErrRefused says that the bus does not take whoever connects for somebody who may. Every error
// of [Connect] is one that is about credentials or certificates: a file that cannot be read,
// credentials that expired or were revoked, a certificate that one side does not trust. Unlike
// an outage it does not pass by itself.
var ErrRefused = errors.New("the bus refuses this connection")

// A refusal is an [ErrRefused] that says in its own words what is wrong.
type refusal struct{ error }

func (r refusal) Is(target error) bool { return target == ErrRefused }
func (r refusal) Unwrap() error        { return r.error }

// inboxPrefix begins every inbox that is somebody's own; his public key follows.
const inboxPrefix = "_INBOX_"

// InboxOf is what the inboxes of the user with the public key begin with, without the
// dot behind it. Nobody else may listen there.
func InboxOf(key string) string { return inboxPrefix + key }

// IsInbox reports whether an answer may be sent to subject. Whoever asks names the
// subject of the answer, and the one who answers may publish more than he does: an
// answer on the subject of a request would be a request, in the name of a broker.
//
// Nobody can tell whose inbox it is: a message does not say who sent it. What keeps
// answers from being sent to somebody else's is that his are told to brokers alone,
// and cannot be guessed.
func IsInbox(subject string) bool {
	// The last two are what the server makes of an inbox between accounts and between
	// clusters; it takes no request that says so itself.
	for _, prefix := range []string{"_INBOX.", inboxPrefix, "_R_.", "_GR_."} {
		if strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	return false
}

// InboxName is the part of an inbox's subject that all inboxes of a user begin with, or where
// nobody has to say who he is those of a connection.
func InboxName(subject string) string {
	name, rest, _ := strings.Cut(subject, ".")
	if strings.HasPrefix(name, inboxPrefix) && len(name) > len(inboxPrefix) {
		return name
	}
	of, _, _ := strings.Cut(rest, ".")
	return name + "." + of
}

// InboxKey is the public key of the user whose inboxes have a name as of [InboxName]; empty:
// the name is that of a connection.
func InboxKey(name string) string {
	key, _ := strings.CutPrefix(name, inboxPrefix)
	if key == name {
		return ""
	}
	return key
}

// MaxCreds bounds a credentials file, and the line by which a client with it connects. Servers take
// lines of 4 KiB where they are not told otherwise, into which those of a host with more than a dozen
// agents do not fit.
const MaxCreds = 256 << 10

// claims are what is read of a user's credentials. Only the server checks them.
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

// subjects are those that a user may use.
type subjects struct {
	Allow []string `json:"allow"`
}

// readClaims reads whose credentials are in a file.
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

// CredsTimes are when the credentials in a file were made and when they expire; zero: never,
// or no file is named.
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

// CredsAgent is the first of the agents that the credentials in a file are for; empty: they name
// none, or cannot be read.
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

// inbox is the user's own inbox, if he may listen there; empty: the usual ones.
// Credentials of a NATS deployment that others set up may know nothing of it.
func (c *claims) inbox() string {
	if own := InboxOf(c.Key); slices.Contains(c.NATS.Subscribe.Allow, own+".>") {
		return own
	}
	return ""
}

// identify are the options that say who connects.
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

// refused is what to say where the bus does not take the connection for somebody
// who may; nil: it was something else.
func (o *Options) refused(err error, where string) error {
	if !unwelcome(err) {
		return nil
	}
	role := o.Role
	if role == "" {
		role = "operator"
	}
	if o.Creds == "" {
		return fmt.Errorf("%w at %s: this fabric requires credentials; create a file with `broker creds add %s NAME` and name it with --creds or HOOKFABRIC_CREDS: %w",
			ErrRefused, where, role, err)
	}
	if c, cerr := readClaims(o.Creds); cerr == nil && c.Expires > 0 && time.Now().Unix() >= c.Expires {
		return fmt.Errorf("%w at %s: the credentials of %s in %s expired at %s; make new ones with `broker creds add %s NAME`: %w",
			ErrRefused, where, c.Name, o.Creds, time.Unix(c.Expires, 0).UTC().Format(time.RFC3339), role, err)
	}
	clock := ""
	if c, cerr := readClaims(o.Creds); cerr == nil && c.Expires > 0 {
		clock = fmt.Sprintf(" (or expired at %s, if the clock of this machine is behind)", time.Unix(c.Expires, 0).UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w at %s: it does not take the credentials in %s; they were revoked, or are of another fabric%s, or the broker refuses them for 10s because they sent too much: `broker creds list` tells, and `broker creds add %s NAME` makes new ones: %w",
		ErrRefused, where, o.Creds, clock, role, err)
}

// unwelcome reports whether the bus refuses whoever connects. While a connection is
// being made the client library knows the error of one of these refusals only, and
// hands on the words of the others.
func unwelcome(err error) bool {
	said := strings.ToLower(err.Error())
	return errors.Is(err, nats.ErrAuthorization) || strings.Contains(said, nats.AUTHENTICATION_EXPIRED_ERR) || strings.Contains(said, nats.AUTHENTICATION_REVOKED_ERR)
}

// MayAsk reports whether the credentials in a file let an agent of a name ask about its
// events. Those that are for no agent at all, and those that cannot be read, do not say: true.
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
