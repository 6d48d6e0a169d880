use audiocpp::graph::*; use audiocpp::weights::HostTensor; use std::time::Instant;
fn main(){
  let threads:usize=std::env::args().nth(1).map_or(2,|s|s.parse().unwrap());
  let device=Device::cpu(threads).unwrap();
  for (c,o,k,d,t) in [(128,128,3,1,1376),(128,128,5,6,1376),(128,128,7,12,1376),(64,64,3,1,11008),(64,64,5,6,11008),(64,64,7,12,11008),(32,32,3,2,44032),(32,32,5,6,44032),(32,32,7,12,44032),(192,384,5,1,86),(192,384,5,1,430),(192,768,3,1,200),(768,192,3,1,200),(192,256,7,1,172),(256,1024,2,1,172),(128,512,2,1,1376),(64,128,2,1,11008),(32,1,7,1,44032),(256,256,11,1,1376),(64,64,11,5,11008)] {
    let pad=((k-1)*d/2,(k-1)*d-(k-1)*d/2);
    let plan=ShortConv::new(c,o,k,d,pad).unwrap();
    let f=|n:usize,s:f32|->Vec<f32>{ (0..n).map(|i| ((i as u64*2654435761+12345)%1000003) as f32/500001.5-1.0).map(|v|v*s).collect() };
    let w=HostTensor::new(&[o,c,k], f(o*c*k, (1.0/(c*k) as f32).sqrt()));
    let mut b=BufferBuilder::weights(&device,4);
    let wt=b.declare("w",DType::F32,&[plan.values()]).unwrap();
    b.allocate().unwrap(); wt.write(&plan.transform(&w).data).unwrap();
    let mut g=Graph::build(&device,|g|{ let x=g.input("x",DType::F32,&[1,t,c]); g.output("y", x.short_conv(&wt,None,&plan,Around{slope:0.1,..Around::default()})); Ok(())}).unwrap();
    let x=f(t*c,1.0);
    let mut best=f64::MAX;
    for _ in 0..15 { g.write("x",&x).unwrap(); let s=Instant::now(); g.compute().unwrap(); best=best.min(s.elapsed().as_secs_f64()); }
    let y=g.read::<f32>("y").unwrap();
    // check some
    let mut e=0f64; let mut nrm=0f64;
    for i in 0..200 { let tt=(i*7919)%t; let oo=(i*31)%o; let mut s=0f64; for kk in 0..k { let at=tt as isize+(kk*d) as isize-pad.0 as isize; if at>=0 && (at as usize)<t { for cc in 0..c { let v=x[at as usize*c+cc]; let v=if v>0.0 {v} else {v*0.1}; s+=v as f64*w.data[(oo*c+cc)*k+kk] as f64; } } } e+=(s-y[tt*o+oo] as f64).powi(2); nrm+=s*s; }
    let gf=2.0*(c*o*k*t) as f64/1e9;
    println!("{c}->{o} k{k} d{d} t{t}: {:.3} ms, {:.0} direct GFLOP/s, err {:.1e}", best*1e3, gf/best, (e/nrm).sqrt());
  }
}
