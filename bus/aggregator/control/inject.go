package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// operator is the default producer of injections.
	operator = "operator"
	// answerProducer is the producer of answers.
	answerProducer = "answer"
	// maxSource bounds the bytes of a source's name.
	maxSource = 64
)

// inject puts something into the queue.
func (c *Control) inject(ctx context.Context, agent string, req *schema.InjectRequest) (*schema.Receipt, error) {
	q, err := c.queue()
	if err != nil {
		return nil, err
	}
	it, err := itemOf(agent, req)
	if err != nil {
		return nil, err
	}
	if agent == "" {
		done, err := c.opt.Limits.Request(intake.Producer, it.Producer)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	if err := c.sayable(ctx, it.Object); err != nil {
		return nil, err
	}
	if err := c.outsource(ctx, it); err != nil {
		return nil, err
	}
	receipt, err := q.Enqueue(ctx, it)
	return &receipt, err
}

// itemOf returns the item that a request describes.
func itemOf(agent string, req *schema.InjectRequest) (*schema.Item, error) {
	it := &schema.Item{
		Scope: schema.Scope{Agent: agent, Session: req.Session}, Producer: req.Producer, Number: req.Number, Name: req.Key,
		Source: req.Source, Strategy: req.Strategy, Content: req.Content, Object: req.Object, Matcher: req.Matcher,
		Expiry: req.TTL, LateJoiners: req.LateJoiners, Subagent: req.Subagent, Background: req.Background,
	}
	for _, check := range []func(*schema.Item, *schema.InjectRequest) error{checkScope, checkContent, checkWords, nameItem} {
		if err := check(it, req); err != nil {
			return nil, err
		}
	}
	return it, nil
}

func checkScope(it *schema.Item, req *schema.InjectRequest) error {
	whom := 0
	for _, named := range []bool{it.Scope.Agent != "", req.Session != "", req.All} {
		if named {
			whom++
		}
	}
	switch {
	case whom == 0:
		return badRequest("no receiver is named; send the request to the subject of an agent, or set session or all")
	case whom > 1:
		return badRequest("the item has several receivers; use one of an agent's subject, session and all")
	}
	return nil
}

func checkContent(it *schema.Item, _ *schema.InjectRequest) error {
	given := 0
	for _, there := range []bool{it.Content != "", it.Object != nil, it.Subagent != nil, it.Background != nil} {
		if there {
			given++
		}
	}
	switch {
	case given == 0:
		return badRequest("the item is empty; send content, object, subagent or background")
	case given > 1:
		return badRequest("the item has several contents; send only one of content, object, subagent and background")
	case it.Subagent != nil && (it.Subagent.ID == "" || it.Subagent.Status == ""):
		return badRequest("a subagent's result needs its id and its status")
	case it.Background != nil && (it.Background.Tool == "" || it.Background.Status == ""):
		return badRequest("the result of a background tool needs the tool and its status")
	}
	return nil
}

func checkWords(it *schema.Item, _ *schema.InjectRequest) error {
	if it.Source == "" {
		switch {
		case it.Subagent != nil:
			it.Source = schema.SourceSubagent
		case it.Background != nil:
			it.Source = schema.SourceBackground
		default:
			it.Source = schema.SourceHuman
		}
	}
	if it.Strategy == "" {
		it.Strategy = schema.ToolResult
	}
	switch {
	case len(it.Source) > maxSource:
		return badRequest("source has %d characters; use at most %d", len(it.Source), maxSource)
	case !it.Strategy.Known():
		return badRequest("there is no strategy %.40q; use %s or %s", it.Strategy, schema.ToolResult, schema.UserMessage)
	case it.Expiry < 0:
		return badRequest("ttl is %s; use a duration above zero, such as 1h", it.Expiry)
	}
	return nil
}

// nameItem sees to it that an item has a key, by which a repeat is noticed.
func nameItem(it *schema.Item, req *schema.InjectRequest) error {
	switch {
	case it.Producer == deliver.RoundProducer || it.Producer == answerProducer:
		return badRequest("the producer %q is reserved for the fabric; use another name", it.Producer)
	case it.Number > 0 && it.Name != "":
		return badRequest("the item has both a number and a key; send one of them")
	case it.Number > 0 && it.Producer == "":
		return badRequest("number %d needs producer; name the program that counts", req.Number)
	case it.Number == 0 && it.Name == "":
		it.Name = newID()
	}
	if it.Producer == "" {
		it.Producer = operator
	}
	return nil
}

// newID returns a new unique id.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// sayable returns an error for a text that is too long for an agent to fetch, or that is not
// stored.
func (c *Control) sayable(ctx context.Context, text *schema.Object) error {
	if text != nil && text.Size > schema.MaxText {
		return badRequest("the object is a text of %d MiB, and agents receive at most %d; put it into a file, and send the file's path",
			text.Size>>20, schema.MaxText>>20)
	}
	return c.there(ctx, text)
}

// there refuses an object that is not in the store whole.
func (c *Control) there(ctx context.Context, objects ...*schema.Object) error {
	for _, o := range objects {
		if o == nil {
			continue
		}
		if c.opt.Objects == nil {
			return unavailable("this broker has no object store")
		}
		if err := c.opt.Objects.Has(ctx, *o); err != nil {
			return err
		}
	}
	return nil
}

// withdrawItem takes an item back. On an agent's subject it must be one of its own.
func (c *Control) withdrawItem(ctx context.Context, agent string, req *schema.WithdrawRequest) (*schema.WithdrawAnswer, error) {
	q, err := c.queue()
	if err != nil {
		return nil, err
	}
	if req.Key == "" {
		return nil, badRequest("key is missing; send one that pending lists")
	}
	if agent != "" {
		token, err := bus.Token(agent)
		if err != nil || !strings.HasPrefix(req.Key, "a-"+token+".") {
			return nil, badRequest("the item %.200q is not for the agent %q alone; send the request to hook.v1.ctl.withdraw._", req.Key, agent)
		}
	}
	answer, err := q.Withdraw(ctx, req.Key)
	return &answer, err
}

// maxInline bounds the bytes of a text that waits in the queue itself, with any characters. The
// object store has longer texts.
const maxInline = queue.MaxContent / 2

// outsource moves the text of an item that is too long for the queue into the
// object store. A structured form that is too long becomes a text.
func (c *Control) outsource(ctx context.Context, it *schema.Item) error {
	store := c.opt.Objects
	if store == nil {
		return nil
	}
	if (it.Subagent != nil || it.Background != nil) && it.Length() > maxInline {
		text, err := schema.Marshal(structured(it))
		if err != nil {
			return fmt.Errorf("rendering the result as text: %w", err)
		}
		it.Content, it.Subagent, it.Background = string(text), nil, nil
	}
	if len(it.Content) <= maxInline {
		return nil
	}
	percent := 100
	if it.Author != "" {
		percent = c.shared()
	}
	o, err := store.PutWithin(ctx, strings.NewReader(it.Content), percent)
	if err != nil {
		return fmt.Errorf("storing the text: %w", err)
	}
	it.Content, it.Object = "", &o
	return nil
}

// structured returns the structured form of a result.
func structured(it *schema.Item) any {
	if it.Subagent != nil {
		return it.Subagent
	}
	return it.Background
}
