module dljob.operator/shim

go 1.21
