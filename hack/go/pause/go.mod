module dljob.operator/build/pause

go 1.24.0
