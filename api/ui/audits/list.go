package audits

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// listPage is a page of records, and the chains of all logs.
type listPage struct {
	*filter
	now    time.Time
	within string // the namespace whose topics the visitor sees
	list   *ddqv1.ListAuditRecordsResponse
	chains []*ddqv1.AuditChain
}

func (s *section) list(ctx context.Context, query url.Values) (frame.View, error) {
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	p := &listPage{filter: readFilter(query), now: now, within: frame.Who(ctx).Namespace}
	if err := p.find(ctx, s.audit); err != nil {
		return frame.View{}, err
	}
	return frame.View{Title: "What was done", Page: "settings", Code: p.wrong.Code(), Body: p.body()}, nil
}

// find asks for chains and records at once: nodes that are silent are waited for.
func (p *listPage) find(ctx context.Context, audit ddqv1.AuditServiceClient) error {
	var verified *ddqv1.VerifyAuditResponse
	var failed, err error
	var wg sync.WaitGroup
	wg.Go(func() { verified, failed = audit.VerifyAudit(ctx, &ddqv1.VerifyAuditRequest{}) })
	if len(p.wrong) == 0 {
		p.list, err = audit.ListAuditRecords(ctx, p.asked)
	}
	wg.Wait()
	p.chains = verified.GetChains()
	switch {
	case failed != nil:
		return failed
	case err != nil && !p.wrong.Take(err, serverFields):
		return err
	}
	return nil
}

func (p *listPage) body() g.Node {
	return g.Group{
		h.P(frame.Anchor("Settings", "settings")),
		p.warnings(),
		p.form(),
		p.table(),
		h.H2(g.Text("Logs")), p.logs(),
	}
}

// warnings are of chains that are broken, and of nodes whose records are missing.
func (p *listPage) warnings() g.Node {
	var all g.Group
	for _, c := range p.chains {
		if c.GetState() == ddqv1.AuditChainState_AUDIT_CHAIN_STATE_BROKEN {
			all = append(all, frame.Warning("The log of node "+frame.Cut(c.GetNode())+" is broken: what it says cannot be relied on. "+c.GetError()))
		}
	}
	if nodes := p.list.GetSilentNodes(); len(nodes) > 0 {
		all = append(all, frame.Warning("Did not answer, so that their records are missing: "+names(nodes)))
	}
	if nodes := p.list.GetNodesWithoutLog(); len(nodes) > 0 {
		all = append(all, frame.Warning("Were started without an audit log (--audit-log): "+names(nodes)))
	}
	return all
}

// names are those of nodes in a sentence, as many as there is room for.
func names(nodes []string) string {
	const most = 20
	var all []string
	for _, n := range nodes[:min(len(nodes), most)] {
		all = append(all, frame.Cut(n))
	}
	if len(nodes) > most {
		all = append(all, "and others")
	}
	return strings.Join(all, ", ")
}

func (p *listPage) table() g.Node {
	switch {
	case len(p.wrong) > 0:
		return nil
	case len(p.list.GetRecords()) == 0:
		return frame.None(p.list.GetNextPageToken(), "audit", p.pairs()...)
	}
	return g.Group{
		frame.Table("Records", "What was done, the newest first", frame.Heads("when", "who", "what", "about", "outcome", "node"), g.Map(joined(p.list.GetRecords()), p.row)),
		frame.More(p.list.GetNextPageToken(), "audit", p.pairs()...),
	}
}

// entry is a row: a record, and that by which the call was asked for where both are on the page.
type entry struct{ record, asked *ddqv1.AuditRecord }

// joined makes one row of the two records of a call.
func joined(records []*ddqv1.AuditRecord) (rows []*entry) {
	type place struct {
		node string
		seq  int64
	}
	answered := make(map[place]*entry)
	for _, r := range records {
		if of := answered[place{r.GetNode(), r.GetSeq()}]; of != nil && r.GetOutcome() == ddqv1.AuditOutcome_AUDIT_OUTCOME_ASKED && !r.GetAltered() {
			of.asked = r
			continue
		}
		row := &entry{record: r}
		if r.GetCall() != 0 && !r.GetAltered() {
			answered[place{r.GetNode(), r.GetCall()}] = row
		}
		rows = append(rows, row)
	}
	return rows
}

func (p *listPage) row(e *entry) g.Node {
	r := e.record
	request := r.GetRequest() + e.asked.GetRequest() // one of them has it
	return h.Tr(
		frame.RowHead(frame.Time(r.GetTime(), p.now)),
		h.Td(who(r)), h.Td(g.Text(frame.Cut(methodText(r.GetMethod()))), g.If(request != "", frame.Fold("request", frame.Verbatim("Request", shortened(request))))),
		h.Td(p.about(r)), outcome(r),
		h.Td(g.Text(frame.Cut(r.GetNode())+" "), frame.Quiet(frame.CountText(r.GetSeq()))),
	)
}

func who(r *ddqv1.AuditRecord) g.Node {
	from := r.GetAddress()
	if r.GetNamespace() != "" {
		from += " in namespace " + r.GetNamespace()
	}
	return g.Group{g.Text(frame.Cut(r.GetCaller()) + " "), frame.Quiet(frame.Cut(strings.TrimSpace(from)))}
}

func methodText(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }

// shortened is what is shown of a request.
func shortened(request string) string {
	const most = 1000
	if r := []rune(request); len(r) > most {
		return string(r[:most]) + "…"
	}
	return request
}

func outcome(r *ddqv1.AuditRecord) g.Node {
	if r.GetAltered() {
		return h.Td(h.Class("bad"), g.Text("not as it was written"))
	}
	text := frame.StateText(r.GetOutcome())
	switch r.GetOutcome() {
	case ddqv1.AuditOutcome_AUDIT_OUTCOME_ASKED:
		text = "asked for"
	case ddqv1.AuditOutcome_AUDIT_OUTCOME_FAILED, ddqv1.AuditOutcome_AUDIT_OUTCOME_REFUSED:
		text += ": " + frame.Cut(r.GetCode())
	case ddqv1.AuditOutcome_AUDIT_OUTCOME_STARTED:
		text = "the server began to write"
	case ddqv1.AuditOutcome_AUDIT_OUTCOME_CUT:
		text = "a line that was not whole was taken out"
	}
	if r.GetCount() > 0 {
		text += ", and " + frame.CountText(r.GetCount()) + " more like it"
	}
	return h.Td(g.Text(text))
}

// logs are the chains of all nodes.
func (p *listPage) logs() g.Node {
	return frame.Table("Logs", "The log of each node", g.Group{frame.Heads("node", "state"), frame.NumberHeads("records"), frame.Heads("last hash", "checked")}, g.Map(p.chains, func(c *ddqv1.AuditChain) g.Node {
		records := ""
		if c.GetState() == ddqv1.AuditChainState_AUDIT_CHAIN_STATE_WHOLE {
			records = frame.CountText(c.GetRecords())
		}
		return h.Tr(
			frame.RowHead(g.Text(frame.Cut(c.GetNode()))), chainState(c), frame.Amounts(records),
			h.Td(h.Code(g.Text(frame.Cut(c.GetHead())))), h.Td(frame.Time(c.GetCheckTime(), p.now)),
		)
	}))
}

func chainState(c *ddqv1.AuditChain) g.Node {
	switch c.GetState() {
	case ddqv1.AuditChainState_AUDIT_CHAIN_STATE_WHOLE:
		return h.Td(g.Text("whole"))
	case ddqv1.AuditChainState_AUDIT_CHAIN_STATE_BROKEN:
		return h.Td(h.Class("bad"), g.Text("broken: "+frame.Cut(c.GetError())))
	case ddqv1.AuditChainState_AUDIT_CHAIN_STATE_CHECKING:
		return h.Td(g.Text("is being checked"))
	case ddqv1.AuditChainState_AUDIT_CHAIN_STATE_NONE:
		return h.Td(frame.Quiet("has none"))
	}
	return h.Td(h.Class("bad"), g.Text("unknown: "+frame.Cut(c.GetError())))
}
