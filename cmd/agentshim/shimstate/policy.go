package shimstate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// maxSmall limits the file of a key, and the first line of a policy's file, in bytes.
const maxSmall = 1 << 10

var errOlder = errors.New("the policy is older than the stored one, and its signature does not show that it is active now")

// ErrBehind says that the broker does not know yet of a freeze or thaw that a verdict announced.
var ErrBehind = errors.New("the policy is older than the last freeze or thaw")

// A Policy is the stored policy of a fabric.
type Policy struct {
	*schema.Policy

	// Since is when it was stored.
	Since time.Time
	// unverified is the signed form until its signature is verified.
	unverified *signedPolicy
}

// signedPolicy is the content of a policy's file, and the key that must have signed it.
type signedPolicy struct {
	path, fabric string
	answer       *schema.PolicyAnswer
	key          []byte
}

// Verify returns an error if the policy is not signed by the fabric's key. Such a policy must not be used.
func (p *Policy) Verify() error {
	if p.unverified == nil {
		return nil
	}
	if _, err := open(p.unverified.answer, p.unverified.key, p.unverified.fabric); err != nil {
		return fmt.Errorf("%s: %w", p.unverified.path, err)
	}
	p.unverified = nil
	return nil
}

// Policy returns the stored policy of a fabric, or nil. A policy that its key did not sign is an error.
func (f Folder) Policy(fabric string) (*Policy, error) {
	p, err := f.UnverifiedPolicy(fabric)
	if err == nil && p != nil {
		err = p.Verify()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// UnverifiedPolicy returns the stored policy of a fabric, or nil. Its rules count only after [Policy.Verify],
// which takes a tenth of a shim's own time and is needed only if the fabric does not answer.
func (f Folder) UnverifiedPolicy(fabric string) (*Policy, error) {
	dir, err := f.fabric(fabric)
	if f == "" || err != nil {
		return nil, err
	}
	stored := policyFile(dir)
	answer, since, err := stored.load()
	if err != nil || answer == nil {
		return nil, err
	}
	key, _, err := keyFile(dir).load()
	if err == nil && key == nil {
		err = fmt.Errorf("the key file %s is missing", keyFile(dir).path)
	}
	if err != nil {
		return nil, err
	}
	p, err := guard.Read(answer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", stored.path, err)
	}
	return &Policy{Policy: p, Since: since, unverified: &signedPolicy{stored.path, fabric, answer, key}}, nil
}

// open verifies that a fabric signed a policy.
func open(a *schema.PolicyAnswer, key []byte, fabric string) (*schema.Policy, error) {
	p, err := guard.Open(a, key)
	if err == nil && p.Fabric != fabric {
		err = fmt.Errorf("the policy belongs to another fabric, %.80q", p.Fabric)
	}
	return p, err
}

// An Offer is the answer of a fabric to a request for its policy.
type Offer struct {
	// Fabric is the fabric that answered, and URLs are its addresses.
	Fabric string
	URLs   []string
	Answer *schema.PolicyAnswer
	// Nonce was sent with the request.
	Nonce string
	// Freeze is the version of freezes that a verdict announced last.
	Freeze uint64
}

// Accept stores a policy, and the fabric that answered. It trusts the key of a fabric's first policy, and
// returns nil for an untrusted one. An error with a policy says that it cannot be stored.
func (f Folder) Accept(o Offer) (*Policy, error) {
	dir, err := f.fabric(o.Fabric)
	if err != nil {
		return nil, err
	}
	if f == "" {
		return f.trusted("", &o)
	}
	unlock, unwritable := lockIn(policyFile(dir).lock)
	if unwritable == nil {
		defer unlock()
	}
	p, err := f.trusted(dir, &o)
	if err == nil && unwritable != nil && !same(dir, &o) {
		// Without a policy the shim refuses more than with an outdated one. A full disk allows to remove it.
		unwritable = errors.Join(unwritable, policyFile(dir).remove())
	}
	if err != nil || unwritable != nil {
		return p, errors.Join(err, unwritable)
	}
	return p, f.storePolicy(dir, &o)
}

// trusted returns the policy of an offer, or why it must not be used.
func (f Folder) trusted(dir string, o *Offer) (*Policy, error) {
	var key []byte
	var before *Policy
	if f != "" {
		var err error
		if key, _, err = keyFile(dir).load(); err != nil {
			return nil, err
		}
		before, _ = f.Policy(o.Fabric) // an unusable policy is replaced
	}
	p, err := open(o.Answer, key, o.Fabric)
	switch {
	case errors.Is(err, guard.ErrOtherKey):
		return nil, fmt.Errorf("%w; if you replaced the fabric on purpose, 'agentshim policy reset' forgets the old key", err)
	case err != nil:
		return nil, err
	case before != nil && p.ConfigVersion < before.ConfigVersion && !guard.Fresh(o.Answer, o.Nonce):
		return nil, fmt.Errorf("%w: it has version %d, the stored one has %d", errOlder, p.ConfigVersion, before.ConfigVersion)
	case before != nil && p.FreezeVersion < before.FreezeVersion && !guard.Fresh(o.Answer, o.Nonce):
		return nil, fmt.Errorf("%w: its freezes have version %d, the stored ones have %d", errOlder, p.FreezeVersion, before.FreezeVersion)
	case p.FreezeVersion < o.Freeze:
		return nil, fmt.Errorf("%w: its freezes have version %d, the fabric already announced %d", ErrBehind, p.FreezeVersion, o.Freeze)
	}
	since := time.Now()
	if before != nil && same(dir, o) {
		since = before.Since
	}
	return &Policy{Policy: p, Since: since}, nil
}

// storePolicy stores a trusted policy, its key if it is the first one, and the URLs. The caller holds the lock.
func (f Folder) storePolicy(dir string, o *Offer) error {
	stored := keyFile(dir)
	if key, _, err := stored.load(); key == nil && err == nil {
		if err := stored.store(o.Answer.Key); err != nil {
			return err
		}
	}
	if !same(dir, o) {
		if err := policyFile(dir).store(o.Answer); err != nil {
			return errors.Join(err, policyFile(dir).remove())
		}
	}
	for _, url := range o.URLs {
		if err := f.addReached(url, o.Fabric); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether the stored policy is the offered one. A restored fabric may assign a version again.
func same(dir string, o *Offer) bool {
	stored, _, err := policyFile(dir).load()
	return err == nil && stored != nil && stored.Document == o.Answer.Document && bytes.Equal(stored.Signature, o.Answer.Signature)
}

func policyFile(dir string) file[*schema.PolicyAnswer] {
	return file[*schema.PolicyAnswer]{
		name: "the policy", limit: schema.MaxPolicy + maxSmall, path: filepath.Join(dir, "policy"), decode: decodePolicy, encode: encodePolicy,
		lock: filepath.Join(dir, lockName),
	}
}

// encodePolicy returns a line with signature, key and digest, then the document as it was signed. The digest
// lets a reader notice a damaged file without checking the signature.
func encodePolicy(a *schema.PolicyAnswer) ([]byte, error) {
	b64 := base64.StdEncoding
	return []byte(b64.EncodeToString(a.Signature) + " " + b64.EncodeToString(a.Key) + " " + policyDigest(a) + "\n" + a.Document), nil
}

func decodePolicy(data []byte) (a *schema.PolicyAnswer, err error) {
	head, document, _ := bytes.Cut(data, []byte("\n"))
	signature, rest, _ := bytes.Cut(head, []byte(" "))
	key, sum, _ := bytes.Cut(rest, []byte(" "))
	a = &schema.PolicyAnswer{Document: string(document)}
	if a.Signature, err = base64.StdEncoding.DecodeString(string(signature)); err == nil {
		a.Key, err = base64.StdEncoding.DecodeString(string(key))
	}
	if err != nil || string(sum) != policyDigest(a) {
		return nil, errors.New("it is not a file of agentshim; delete it")
	}
	return a, nil
}

// policyDigest returns the digest of a document, its signature and its key.
func policyDigest(a *schema.PolicyAnswer) string {
	h := sha256.New()
	h.Write(a.Signature)
	h.Write(a.Key)
	h.Write([]byte(a.Document))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// keyFile returns the file of the first key of a fabric, which stays known if the policy's file is lost.
func keyFile(dir string) file[[]byte] {
	return file[[]byte]{
		name: "the key", limit: maxSmall, path: filepath.Join(dir, "key"), lock: filepath.Join(dir, lockName),
		encode: func(key []byte) ([]byte, error) { return []byte(base64.StdEncoding.EncodeToString(key) + "\n"), nil },
		decode: func(data []byte) ([]byte, error) {
			key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
			if err != nil || len(key) != ed25519.PublicKeySize {
				return nil, errors.New("it contains no key; delete the file to trust the next fabric that answers")
			}
			return key, nil
		},
	}
}
