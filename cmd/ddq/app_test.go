package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

func TestGraphIsComplete(t *testing.T) {
	cfg := &serverConfig{Store: storeMemory, GRPCAddr: "127.0.0.1:0", HTTPAddr: off}
	if err := fx.ValidateApp(new(node).options(t.Context(), cfg, slog.New(slog.DiscardHandler))); err != nil {
		t.Fatal(err)
	}
}

func TestReadinessSaysWhyNot(t *testing.T) {
	var state error
	mux := healthMux(func() error { return state }, prometheus.NewRegistry())
	for _, tc := range []struct {
		path string
		err  error
		code int
		body string
	}{
		{"/readyz", nil, http.StatusOK, "ready"},
		{"/readyz", errHoldLost, http.StatusServiceUnavailable, errHoldLost.Error()},
		{"/healthz", errHoldLost, http.StatusOK, "ok"},
		{"/debug/pprof/", nil, http.StatusNotFound, "not found"},
	} {
		state = tc.err
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path, nil))
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%s while %v: %d %q, want %d %q", tc.path, tc.err, w.Code, w.Body, tc.code, tc.body)
		}
	}
}
