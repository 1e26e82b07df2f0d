//! Crates as peers, one a process: see ../peer.go for the protocol.
//!
//! What a crate takes is made from the file before the clock starts. rustc
//! never fuses multiplication and addition, so target-cpu=native changes no
//! sign.

use std::io::{BufRead, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Instant;

use spade::{DelaunayTriangulation, HasPosition, Point2, Triangulation};

type Point = [f64; 3]; // z is 0 for flat files

/// What is found: indices of corners of triangles, coordinates, or nothing
/// that can be told from the input's any more.
enum Found {
    Triangles(Vec<i32>),
    Points2(Vec<f64>),
    Points3(Vec<f64>),
    Rounded(usize),
}

impl Found {
    fn count(&self) -> usize {
        match self {
            Found::Triangles(v) => v.len() / 3,
            Found::Points2(v) => v.len() / 2,
            Found::Points3(v) => v.len() / 3,
            Found::Rounded(n) => *n,
        }
    }

    fn save(&self, path: &str) -> std::io::Result<&'static str> {
        let (form, bytes): (_, Vec<u8>) = match self {
            Found::Triangles(v) => ("triangles", v.iter().flat_map(|i| i.to_le_bytes()).collect()),
            Found::Rounded(_) => ("count", Vec::new()),
            Found::Points2(v) | Found::Points3(v) => ("points", v.iter().flat_map(|x| x.to_le_bytes()).collect()),
        };
        std::fs::write(path, bytes)?;
        Ok(form)
    }
}

/// A crate: what it is, and how a cloud becomes a job that can be repeated.
/// A job returns its nanoseconds: copies of input that it consumes are made
/// outside the clock.
struct Library {
    name: &'static str,
    version: &'static str,
    op: &'static str,
    job: fn(&[Point]) -> Job,
}

type Job = Box<dyn FnMut() -> Result<(u128, Found), String>>;

const LIBRARIES: [(&str, Library); 6] = [
    ("delaunator", Library { name: "delaunator-rs", version: "1.1.0", op: "delaunay2d", job: delaunator_job }),
    ("spade", Library { name: "spade", version: "2.15.1", op: "delaunay2d", job: spade_job }),
    ("geo", Library { name: "geo (Rust)", version: "0.33.1", op: "hull2d", job: geo_job }),
    ("parry", Library { name: "parry3d-f64", version: "0.31.1", op: "hull3d", job: parry_job }),
    ("quickhull", Library { name: "quickhull (Rust, float32)", version: "0.1.0", op: "hull3d", job: quickhull_job }),
    ("chull", Library { name: "chull", version: "0.2.4", op: "hull3d", job: chull_job }),
];

fn timed<T>(f: impl FnOnce() -> T) -> (u128, T) {
    let start = Instant::now();
    let result = f();
    (start.elapsed().as_nanos(), result)
}

fn delaunator_job(cloud: &[Point]) -> Job {
    let points: Vec<_> = cloud.iter().map(|p| delaunator::Point { x: p[0], y: p[1] }).collect();
    Box::new(move || {
        let (ns, t) = timed(|| delaunator::triangulate(&points));
        Ok((ns, Found::Triangles(t.triangles.iter().map(|&i| i as i32).collect())))
    })
}

/// A vertex that knows its index: bulk_load reorders, and is faster than
/// bulk_load_stable.
struct Numbered {
    at: Point2<f64>,
    index: i32,
}

impl HasPosition for Numbered {
    type Scalar = f64;
    fn position(&self) -> Point2<f64> {
        self.at
    }
}

fn spade_job(cloud: &[Point]) -> Job {
    let points = cloud.to_vec();
    Box::new(move || {
        let input: Vec<_> =
            points.iter().enumerate().map(|(i, p)| Numbered { at: Point2::new(p[0], p[1]), index: i as i32 }).collect();
        let (ns, t) = timed(|| DelaunayTriangulation::<Numbered>::bulk_load(input));
        let t = t.map_err(|e| e.to_string())?;
        let corners = t.inner_faces().flat_map(|f| f.vertices().map(|v| v.data().index)).collect();
        Ok((ns, Found::Triangles(corners)))
    })
}

fn geo_job(cloud: &[Point]) -> Job {
    let points: Vec<_> = cloud.iter().map(|p| geo::coord! { x: p[0], y: p[1] }).collect();
    Box::new(move || {
        let mut input = points.clone(); // it is reordered
        let (ns, hull) = timed(|| geo::algorithm::convex_hull::qhull::quick_hull(&mut input));
        Ok((ns, Found::Points2(hull.coords().flat_map(|c| [c.x, c.y]).collect())))
    })
}

fn parry_job(cloud: &[Point]) -> Job {
    let points: Vec<_> = cloud.iter().map(|p| parry3d_f64::math::Vector::new(p[0], p[1], p[2])).collect();
    Box::new(move || {
        let (ns, hull) = timed(|| parry3d_f64::transformation::try_convex_hull(&points));
        let (vertices, _) = hull.map_err(|e| e.to_string())?;
        Ok((ns, Found::Points3(vertices.iter().flat_map(|v| [v.x, v.y, v.z]).collect())))
    })
}

fn quickhull_job(cloud: &[Point]) -> Job {
    let points: Vec<_> = cloud.iter().map(|p| glam::Vec3A::new(p[0] as f32, p[1] as f32, p[2] as f32)).collect();
    Box::new(move || {
        let (ns, hull) = timed(|| quickhull::ConvexTriangleMesh::try_from_points(&points, None));
        let hull = hull.map_err(|e| format!("{e:?}"))?;
        Ok((ns, Found::Rounded(hull.vertices().len())))
    })
}

fn chull_job(cloud: &[Point]) -> Job {
    let points: Vec<_> = cloud.iter().map(|p| p.to_vec()).collect();
    Box::new(move || {
        let (ns, hull) = timed(|| chull::ConvexHull::try_new(&points, f64::EPSILON, None));
        let (vertices, _) = hull.map_err(|e| format!("{e:?}"))?.vertices_indices();
        Ok((ns, Found::Points3(vertices.into_iter().flatten().collect())))
    })
}

fn load(path: &str, dims: usize) -> std::io::Result<Vec<Point>> {
    let values: Vec<f64> =
        std::fs::read(path)?.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    Ok(values.chunks_exact(dims).map(|p| [p[0], p[1], if dims == 3 { p[2] } else { 0.0 }]).collect())
}

fn run(job: &mut Job, repetitions: usize) -> Result<(Vec<u128>, Found), String> {
    let mut times = Vec::with_capacity(repetitions);
    let mut last = Err("nothing was run".to_string());
    for _ in 0..repetitions {
        let (ns, found) = job()?;
        times.push(ns);
        last = Ok(found);
    }
    last.map(|found| (times, found))
}

fn refuse(why: &str) -> String {
    let clean: String = why.chars().map(|c| if c == '"' || c == '\\' || c.is_control() { ' ' } else { c }).collect();
    format!("{{\"error\":\"{clean}\"}}")
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, library)) = LIBRARIES.iter().find(|(key, _)| *key == wanted) else {
        eprintln!("no crate is called {wanted}");
        std::process::exit(2);
    };
    let mut out = std::io::stdout();
    let mut answer = |text: String| {
        writeln!(out, "{text}").unwrap();
        out.flush().unwrap();
    };
    answer(format!("{{\"peer\":\"{}\",\"version\":\"{}\",\"ops\":[\"{}\"]}}", library.name, library.version, library.op));
    let mut job: Option<Job> = None;
    let mut found: Option<Found> = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (what, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        answer(match what {
            "load" => match load(second, first.parse().unwrap_or(2)) {
                Ok(cloud) => {
                    job = Some((library.job)(&cloud));
                    format!("{{\"points\":{}}}", cloud.len())
                }
                Err(e) => refuse(&e.to_string()),
            },
            "run" => match job.as_mut() {
                Some(job) => {
                    // A crate that panics on a cloud may still do the next one.
                    match catch_unwind(AssertUnwindSafe(|| run(job, second.parse().unwrap_or(1)))) {
                        Ok(Ok((times, result))) => {
                            let text = format!("{{\"ns\":{times:?},\"count\":{}}}", result.count());
                            found = Some(result);
                            text
                        }
                        Ok(Err(e)) => refuse(&e),
                        Err(_) => refuse("panic"),
                    }
                }
                None => refuse("no cloud"),
            },
            "save" => match found.as_ref().map(|f| f.save(second)) {
                Some(Ok(form)) => format!("{{\"form\":\"{form}\"}}"),
                Some(Err(e)) => refuse(&e.to_string()),
                None => refuse("no result"),
            },
            _ => refuse("no such request"),
        });
    }
}
