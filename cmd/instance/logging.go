package main

import (
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"

	api "cnmsql.co/operator/api/v1alpha1"
)

// newLogger writes one JSON object a line. What client-go has to say goes there too.
func newLogger(level api.LogLevel, out io.Writer) logr.Logger {
	at := zapcore.InfoLevel
	switch level {
	case api.LogLevelDebug:
		at = zapcore.DebugLevel
	case api.LogLevelError:
		at = zapcore.ErrorLevel
	case api.LogLevelInfo:
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zapcore.AddSync(out)), at)
	log := zapr.NewLogger(zap.New(core))
	klog.SetLogger(log.WithName("kubernetes"))
	return log
}
