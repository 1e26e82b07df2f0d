// Package keda asks KEDA's own Kafka scaler what it answers about the lag of run, and decodes
// the ScaledObject of deploy/run with KEDA's types. It is a module of its own: KEDA's scalers
// are one package with the clients of all clouds, which takes long to build.
package keda
