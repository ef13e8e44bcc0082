package frame

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// mount is where the pages are for those who look at them. Within the pages every address begins with Prefix;
// what comes in and what goes out is under the prefix of the mount.
type mount struct {
	prefix    string            // with a slash at its end
	addresses *strings.Replacer // nil: it is Prefix
}

// leading are the attributes that lead somewhere.
var leading = []string{"href", "src", "action", "formaction", "data-live"}

// CheckPrefix says what is wrong with a prefix of the pages, which is such as /ui or /tools/ddq.
func CheckPrefix(prefix string) error {
	switch {
	case !strings.HasPrefix(prefix, "/") || prefix == "/":
		return errors.New("it begins with / and says more than that")
	case path.Clean(prefix) != prefix:
		return errors.New("it neither ends with / nor has //, /. or /.. in it")
	case strings.ContainsFunc(prefix, unfit):
		return errors.New("it is of letters, digits and / - . _ ~")
	}
	return nil
}

func unfit(r rune) bool {
	return !strings.ContainsRune("/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", r)
}

// Mount has the pages under another prefix than that of Prefix, which CheckPrefix has passed. It is called before
// the first request.
func (f *Frame) Mount(prefix string) {
	if prefix += "/"; prefix == Prefix {
		return
	}
	var pairs []string
	for _, name := range leading {
		pairs = append(pairs, " "+name+`="`+Prefix, " "+name+`="`+prefix)
	}
	f.mount = mount{prefix, strings.NewReplacer(pairs...)}
}

// text is a page, or a part of one, as it is sent. What others wrote is not touched: a quote of theirs is escaped,
// so that none of it looks like an attribute.
func (m *mount) text(page string) string {
	page = strings.ReplaceAll(page, "\x00", "\uFFFD") // no page may have it, and browsers would leave it out
	if m.addresses == nil {
		return page
	}
	return m.addresses.Replace(page)
}

// parts are those of a page, as they are sent. Their marks are the same under every prefix.
func (m *mount) parts(v *View) ([]part, error) {
	parts, err := partsOf(v)
	for i := range parts {
		parts[i].text = m.text(parts[i].text)
	}
	return parts, err
}

// outside is the address of a page for those who look at it.
func (m *mount) outside(address string) string {
	if rest, ok := strings.CutPrefix(address, Prefix); ok && m.addresses != nil {
		return m.prefix + rest
	}
	return address
}

// inside is a request as the pages know it: nil if it is of none of them.
func (m *mount) inside(r *http.Request) *http.Request {
	if m.addresses == nil {
		return r
	}
	rest, ok := strings.CutPrefix(r.URL.Path, m.prefix)
	if !ok || rest != "" && path.Clean(Prefix+rest) != strings.TrimSuffix(Prefix+rest, "/") { // which would be led to what it should be
		return nil
	}
	within := new(http.Request)
	*within = *r
	within.URL = new(url.URL)
	*within.URL = *r.URL
	within.URL.Path, within.URL.RawPath = Prefix+rest, ""
	return within
}
