package conn

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// kind is how the servers behind a URL belong together.
type kind int

const (
	kindOne      kind = iota // one server
	kindSentinel             // a primary that sentinels name
	kindCluster              // the primaries of a cluster
)

// scheme is what the beginning of a URL means.
type scheme struct {
	kind   kind
	native string // the scheme that go-redis knows
}

var schemes = map[string]scheme{
	"redis":           {kindOne, "redis"},
	"rediss":          {kindOne, "rediss"},
	"unix":            {kindOne, "unix"},
	"redis-sentinel":  {kindSentinel, "redis"},
	"rediss-sentinel": {kindSentinel, "rediss"},
	"redis-cluster":   {kindCluster, "redis"},
	"rediss-cluster":  {kindCluster, "rediss"},
}

// target is what a URL says. One of the three options is set.
type target struct {
	one      *redis.Options
	sentinel *redis.FailoverOptions
	cluster  *redis.ClusterOptions

	waitReplicas int           // -1: the URL does not say
	waitTimeout  time.Duration // 0: the URL does not say
}

// copy returns a target whose options are not those of t: connect changes them.
func (t target) copy() target {
	if t.one != nil {
		one := *t.one
		t.one = &one
	}
	if t.sentinel != nil {
		sentinel := *t.sentinel
		t.sentinel = &sentinel
	}
	if t.cluster != nil {
		cluster := *t.cluster
		t.cluster = &cluster
	}
	return t
}

// CheckURL says what is wrong with a Config.URL, and shows no password.
func CheckURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

// RedactURL returns a Config.URL for people and logs: with xxxxx in the place of
// passwords. Of a URL that is not well-formed it returns the scheme at most.
func RedactURL(raw string) string {
	p, err := splitURL(raw)
	if err != nil && p.name == "" {
		return "…"
	}
	if err != nil {
		return p.name + "://…"
	}
	user := ""
	if p.user != nil {
		u := url.URL{User: p.user}
		user = strings.TrimPrefix(u.Redacted(), "//")
	}
	for _, secret := range []string{"password", "sentinel_password"} {
		if p.query.Has(secret) {
			p.query.Set(secret, "xxxxx")
		}
	}
	redacted := p.name + "://" + user + strings.Join(p.hosts, ",") + p.path
	if len(p.query) > 0 {
		redacted += "?" + p.query.Encode()
	}
	return redacted
}

// parts are the pieces of a URL. net/url refuses lists of hosts, and quotes
// passwords in its errors. What is not well-formed has its scheme only.
type parts struct {
	name string // of the scheme
	scheme
	user  *url.Userinfo
	hosts []string
	path  string
	query url.Values
}

var errEncoding = errors.New("redis url: special characters in user, password and path must be percent-encoded")

func splitURL(raw string) (p parts, err error) {
	name, rest, _ := strings.Cut(raw, "://")
	s, known := schemes[name]
	if !known {
		return parts{}, errors.New("redis url: it starts with none of redis://, rediss://, unix://, redis-sentinel:// and redis-cluster://")
	}
	p.name, p.scheme = name, s
	rest, query, _ := strings.Cut(rest, "?")
	authority, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user, hosts, hasUser := cutLast(authority, "@")
	if !hasUser {
		hosts = authority
	}
	stray := strings.Contains(rest, "#") || s.native != "unix" && strings.Contains(path, "@")
	if stray || !hasUser && strings.Contains(query, "@") {
		return p, errEncoding // most likely in a password, so nothing is quoted from here on
	}
	if p.query, err = url.ParseQuery(query); err != nil {
		return p, errors.New("redis url: the options behind the ? are not well-formed")
	}
	if hasUser {
		u, err := url.Parse("redis://" + user + "@host")
		if err != nil {
			return p, errEncoding
		}
		p.user = u.User
	}
	p.hosts, p.path = strings.Split(hosts, ","), path
	for _, host := range p.hosts {
		if _, err := url.Parse("redis://" + host); err != nil {
			return p, fmt.Errorf("redis url: %q is not host:port", host)
		}
	}
	return p, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// parseURL reads a Config.URL.
func parseURL(raw string) (target, error) {
	p, err := splitURL(raw)
	if err != nil {
		return target{}, err
	}
	if p.query.Has("skip_verify") {
		return target{}, errors.New("redis url: skip_verify is not taken: certificates of servers are always verified")
	}
	t := target{waitReplicas: -1}
	if err := t.takeWait(p.query); err != nil {
		return target{}, err
	}
	switch p.kind {
	case kindSentinel:
		t.sentinel, err = p.failoverOptions()
	case kindCluster:
		t.cluster, err = p.clusterOptions()
	default:
		t.one, err = p.options()
	}
	if err != nil {
		return target{}, err
	}
	return t, nil
}

// takeWait takes the options of ours out of the query.
func (t *target) takeWait(q url.Values) error {
	if v := q.Get("wait_replicas"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("redis url: wait_replicas is %q, want a number from 0", v)
		}
		t.waitReplicas = n
	}
	if v := q.Get("wait_timeout"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < time.Millisecond {
			return fmt.Errorf("redis url: wait_timeout is %q, want a duration from 1ms, such as 500ms", v)
		}
		t.waitTimeout = d
	}
	q.Del("wait_replicas")
	q.Del("wait_timeout")
	return nil
}

func (p parts) options() (*redis.Options, error) {
	if len(p.hosts) > 1 {
		return nil, fmt.Errorf("redis url: %s:// takes one server, not %d: is it redis-sentinel:// or redis-cluster://?", p.name, len(p.hosts))
	}
	u := url.URL{Scheme: p.native, User: p.user, Host: p.hosts[0], Path: p.path, RawQuery: p.query.Encode()}
	opts, err := redis.ParseURL(u.String())
	return opts, libraryError(err)
}

func (p parts) failoverOptions() (*redis.FailoverOptions, error) {
	if err := p.checkMany(); err != nil {
		return nil, err
	}
	master, db, _ := strings.Cut(strings.Trim(p.path, "/"), "/")
	if master == "" {
		return nil, fmt.Errorf("redis url: %s:// needs the name of the primary behind the hosts: host:port,host:port/name", p.name)
	}
	query := p.manyQuery()
	user, password := query.Get("sentinel_username"), query.Get("sentinel_password")
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	query.Set("master_name", master)
	u := url.URL{Scheme: p.native, Host: p.hosts[0], Path: "/" + db, RawQuery: query.Encode()}
	opts, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, libraryError(err)
	}
	if p.user != nil {
		opts.Username = p.user.Username()
		opts.Password, _ = p.user.Password()
	}
	opts.SentinelUsername, opts.SentinelPassword = user, password
	return opts, nil
}

func (p parts) clusterOptions() (*redis.ClusterOptions, error) {
	if err := p.checkMany(); err != nil {
		return nil, err
	}
	if strings.Trim(p.path, "/") != "" {
		return nil, fmt.Errorf("redis url: %s:// takes no path: a cluster has one database only", p.name)
	}
	u := url.URL{Scheme: p.native, User: p.user, Host: p.hosts[0], RawQuery: p.manyQuery().Encode()}
	opts, err := redis.ParseClusterURL(u.String())
	return opts, libraryError(err)
}

// checkMany checks what lists of hosts come with.
func (p parts) checkMany() error {
	for _, host := range p.hosts {
		name, port, err := net.SplitHostPort(host)
		if n, _ := strconv.Atoi(port); err != nil || name == "" || n < 1 || n > 65535 {
			return fmt.Errorf("redis url: %q is no host:port", host)
		}
	}
	for _, name := range []string{"replica_only", "read_only", "route_by_latency", "route_randomly", "addr", "master_name", "username", "db"} {
		if p.query.Has(name) {
			return fmt.Errorf("redis url: option %s cannot be used here", name)
		}
	}
	return nil
}

// manyQuery is the query with all hosts but the first, as the library takes them.
func (p parts) manyQuery() url.Values {
	query := make(url.Values, len(p.query)+1)
	for name, values := range p.query {
		query[name] = slices.Clone(values)
	}
	if len(p.hosts) > 1 {
		query["addr"] = p.hosts[1:]
	}
	return query
}

// libraryError says what the library says about a URL, but for the URL.
func libraryError(err error) error {
	var whole *url.Error
	if errors.As(err, &whole) {
		err = whole.Err
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("redis url: %w", err)
}
