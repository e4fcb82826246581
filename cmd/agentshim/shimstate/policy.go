package shimstate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

const (
	// policyFile and keyFile lie in a fabric's folder: its policy, and the key that
	// was seen first. The key has a file of its own, so that it stays known whatever
	// becomes of the policy.
	policyFile = "policy"
	keyFile    = "key"
	// maxSmall bounds the files that hold one word.
	maxSmall = 1 << 10
)

// Why a policy is not kept.
var (
	// ErrOlder says that it is of an older version than the one that is kept, and
	// that nobody vouches for it.
	ErrOlder = errors.New("the policy is older than the stored one, and its signature does not show that it is active now")
	// ErrBehind says that whoever answered has not heard yet of the last freeze or thaw,
	// of which a verdict told.
	ErrBehind = errors.New("the policy is older than the last freeze or thaw")
	// ErrOtherFabric says that it is another fabric's.
	ErrOtherFabric = errors.New("the policy belongs to another fabric")
)

// A Policy is what is kept of a fabric's policy.
type Policy struct {
	*schema.Policy

	// Since is when it was kept.
	Since time.Time
	// sealed is what it was read from while nobody has checked who signed it.
	sealed *sealed
}

// sealed is a policy as it lies in its file, and the key that must have signed it.
type sealed struct {
	path, fabric string
	answer       *schema.PolicyAnswer
	key          []byte
}

// Prove checks that a policy is signed by the fabric's key. One that is not must not
// count.
func (p *Policy) Prove() error {
	if p.sealed == nil {
		return nil
	}
	if _, err := open(p.sealed.answer, p.sealed.key, p.sealed.fabric); err != nil {
		return fmt.Errorf("%s: %w", p.sealed.path, err)
	}
	p.sealed = nil
	return nil
}

// Policy is what is kept of a fabric's policy; nil: nothing is. What is there and
// is not signed by the fabric's key is an error, and counts as nothing.
func (f Folder) Policy(fabric string) (*Policy, error) {
	p, err := f.Unproven(fabric)
	if err == nil && p != nil {
		err = p.Prove()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Unproven is what is kept of a fabric's policy, whoever signed it; nil: nothing is.
// It says of which version it is and what hooks need, at every call: whether a call
// may pass is asked when the fabric is gone, and [Policy.Prove] before that. To check
// a signature takes a tenth of the time that a shim has of its own.
func (f Folder) Unproven(fabric string) (*Policy, error) {
	dir, err := f.of(fabric)
	if f == "" || err != nil {
		return nil, err
	}
	path := filepath.Join(dir, policyFile)
	answer, since, err := readPolicy(path)
	if err != nil || answer == nil {
		return nil, err
	}
	key, err := readKey(dir)
	if err == nil && key == nil {
		err = fmt.Errorf("the key file %s is missing", filepath.Join(dir, keyFile))
	}
	if err != nil {
		return nil, err
	}
	p, err := guard.Read(answer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Policy{Policy: p, Since: since, sealed: &sealed{path, fabric, answer, key}}, nil
}

// open checks that a policy is the fabric's.
func open(a *schema.PolicyAnswer, key []byte, fabric string) (*schema.Policy, error) {
	p, err := guard.Open(a, key)
	if err == nil && p.Fabric != fabric {
		err = fmt.Errorf("%w, %.80q", ErrOtherFabric, p.Fabric)
	}
	return p, err
}

// An Offer is an answer to the question for a policy.
type Offer struct {
	// Fabric is who was reached, and URLs under which it is to be known.
	Fabric string
	URLs   []string
	Answer *schema.PolicyAnswer
	// Nonce is what was sent with the question.
	Nonce string
	// Freeze is the version of what is frozen that a verdict told last.
	Freeze uint64
}

// Accept keeps a policy and notes who was reached. The key of the first is the
// fabric's from then on; nil: the policy is not to be believed. One that is, but
// cannot be kept, is returned with the error. Of a folder that is empty, only the
// signature is checked.
func (f Folder) Accept(o Offer) (*Policy, error) {
	dir, err := f.of(o.Fabric)
	if err != nil {
		return nil, err
	}
	if f == "" {
		return f.believe("", &o)
	}
	unlock, unwritable := writable(dir)
	if unwritable == nil {
		defer unlock()
	}
	p, err := f.believe(dir, &o)
	if err == nil && unwritable != nil && !same(dir, &o) {
		unwritable = errors.Join(unwritable, outdated(dir))
	}
	if err != nil || unwritable != nil {
		return p, errors.Join(err, unwritable)
	}
	return p, f.keepPolicy(dir, &o)
}

// outdated takes away a policy that is known to be another one by now: that one
// is gone refuses more than the old one would. A full disk has room for that.
func outdated(dir string) error {
	err := os.Remove(filepath.Join(dir, policyFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// writable locks a folder, which it makes.
func writable(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return lock(filepath.Join(dir, ".lock"))
}

// believe reads a policy that is offered, or says why it must not count.
func (f Folder) believe(dir string, o *Offer) (*Policy, error) {
	var key []byte
	var before *Policy
	if f != "" {
		var err error
		if key, err = readKey(dir); err != nil {
			return nil, err
		}
		before, _ = f.Policy(o.Fabric) // one that cannot be used is replaced
	}
	p, err := open(o.Answer, key, o.Fabric)
	switch {
	case errors.Is(err, guard.ErrOtherKey):
		return nil, fmt.Errorf("%w; if you replaced the fabric on purpose, 'agentshim policy reset' forgets the old key", err)
	case err != nil:
		return nil, err
	case before != nil && p.ConfigVersion < before.ConfigVersion && !guard.Fresh(o.Answer, o.Nonce):
		return nil, fmt.Errorf("%w: it has version %d, the stored one has %d", ErrOlder, p.ConfigVersion, before.ConfigVersion)
	case before != nil && p.FreezeVersion < before.FreezeVersion && !guard.Fresh(o.Answer, o.Nonce):
		return nil, fmt.Errorf("%w: its freezes have version %d, the stored ones have %d", ErrOlder, p.FreezeVersion, before.FreezeVersion)
	case p.FreezeVersion < o.Freeze:
		return nil, fmt.Errorf("%w: its freezes have version %d, the fabric already announced %d", ErrBehind, p.FreezeVersion, o.Freeze)
	}
	since := time.Now()
	if before != nil && same(dir, o) {
		since = before.Since
	}
	return &Policy{Policy: p, Since: since}, nil
}

// keepPolicy writes down what is believed.
func (f Folder) keepPolicy(dir string, o *Offer) error {
	if key, err := readKey(dir); key == nil && err == nil {
		if err := Replace(filepath.Join(dir, keyFile), []byte(base64.StdEncoding.EncodeToString(o.Answer.Key)+"\n")); err != nil {
			return err
		}
	}
	if !same(dir, o) {
		if err := Replace(filepath.Join(dir, policyFile), encodePolicy(o.Answer)); err != nil {
			return errors.Join(err, outdated(dir))
		}
	}
	for _, url := range o.URLs {
		if err := f.reach(url, o.Fabric); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether what is kept is what is offered, to the byte: a fabric that
// was copied back may give a number once more.
func same(dir string, o *Offer) bool {
	kept, _, err := readPolicy(filepath.Join(dir, policyFile))
	return err == nil && kept != nil && kept.Document == o.Answer.Document && bytes.Equal(kept.Signature, o.Answer.Signature)
}

// of is a fabric's folder.
func (f Folder) of(fabric string) (string, error) {
	token, err := bus.Token(fabric)
	if err != nil {
		return "", fmt.Errorf("the fabric's id: %w", err)
	}
	return filepath.Join(string(f), folder, token), nil
}

// encodePolicy is what a policy's file holds: signature, key and digest on a line, then
// the document as it was signed. The digest proves nothing: by it a file that broke is
// noticed, and replaced, while nobody checks the signature.
func encodePolicy(a *schema.PolicyAnswer) []byte {
	b64 := base64.StdEncoding
	return []byte(b64.EncodeToString(a.Signature) + " " + b64.EncodeToString(a.Key) + " " + digest(a) + "\n" + a.Document)
}

// digest is that of a document and what it is signed with.
func digest(a *schema.PolicyAnswer) string {
	h := sha256.New()
	h.Write(a.Signature)
	h.Write(a.Key)
	h.Write([]byte(a.Document))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

var errNoPolicy = errors.New("is not a file of agentshim; delete it")

// readPolicy reads a policy's file, and when it was written; nil: there is none.
func readPolicy(path string) (a *schema.PolicyAnswer, since time.Time, err error) {
	data, since, err := bounded(path, schema.MaxPolicy+maxSmall)
	if err != nil || data == nil {
		return nil, since, err
	}
	head, document, _ := bytes.Cut(data, []byte("\n"))
	signature, rest, _ := bytes.Cut(head, []byte(" "))
	key, sum, _ := bytes.Cut(rest, []byte(" "))
	a = &schema.PolicyAnswer{Document: string(document)}
	if a.Signature, err = base64.StdEncoding.DecodeString(string(signature)); err == nil {
		a.Key, err = base64.StdEncoding.DecodeString(string(key))
	}
	if err != nil || string(sum) != digest(a) {
		return nil, since, fmt.Errorf("%s %w", path, errNoPolicy)
	}
	return a, since, nil
}

// readKey reads the fabric's key; nil: none was seen yet.
func readKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	data, err := small(path)
	if err != nil || data == nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%s contains no key; delete the file to trust the next fabric that answers", path)
	}
	return key, nil
}

func small(path string) ([]byte, error) {
	data, _, err := bounded(path, maxSmall)
	return data, err
}
