b() { rows=$1; cols=$2; shift 2; echo "== $rows x $cols"; timeout 100 python3 -m kgen bench "$@" --rows $rows --cols $cols --seconds 2 --db /tmp/k.db 2>&1 | grep -E "^ ?(v1|copy_driver|copy_one)|rror|kgen:" | sed -E 's/ +/ /g' | cut -c1-140; }
export KGEN_CACHE_DIR=/tmp/kc COLUMNS=250
S() { n=$1; shift; for c in "$@"; do set -- ${c//./ }; for m in "" ",min_blocks=$3" ",min_blocks=$3,static_cols=$n" ",static_cols=$n" ",min_blocks=$3,unaligned=scalar_groups"; do echo "v13:blocks_per_row=$1,threads=$2$m"; done; done; }
b 64 151936 $(S 151936 16.192.4 16.256.2) 
b 32 128256 $(S 128256 16.128.4 16.256.2)
b 1024 131072 $(S 131072 8.512.2) $(S 131072 16.256.4) v13:threads=256,min_blocks=2,static_cols=131072
b 1 32000 $(S 32000 16.128.1) v13:blocks_per_row=16,threads=128,exp=__expf
b 8 32000 $(S 32000 8.256.1)
b 128 16384 $(S 16384 4.128.4) v13:blocks_per_row=4,threads=128,exp=__expf
U() { n=$1; shift; for c in "$@"; do set -- ${c//./ }; for m in ",min_blocks=$3" ",min_blocks=$3,static_cols=$n"; do echo "v13:unaligned=shift,blocks_per_row=$1,threads=$2$m"; done; done; }
b 4096 50257 $(U 50257 2.256.2 4.128.4 8.64.8 4.256.2)
R=merge=separate,update=three_pass,cache=exps_registers,unaligned=shift,items=auto,exp=exp2
b 65536 127 v10:threads_per_row=8,$R v10:threads_per_row=16,$R v10:threads_per_row=8,$R,threads=128 v10:threads_per_row=8,$R,static_cols=127 v10:threads_per_row=4,$R,static_cols=127,threads=128
b 16384 257 v10:threads_per_row=32,$R,static_cols=257 v10:threads_per_row=16,$R,static_cols=257 v10:threads_per_row=32,$R,threads=128 v10:threads_per_row=8,$R,threads=128,static_cols=257
