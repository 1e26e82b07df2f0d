// CGAL as a peer: see ../peer.go for the protocol.
//
// EPICK kernel, as its manual recommends for speed with exact predicates.
// convex_hull_2 (Akl and Toussaint) and ch_graham_andrew give points, since
// traits that carry indices would slow them; the driver finds the indices.
#include <CGAL/Convex_hull_traits_3.h>
#include <CGAL/Delaunay_triangulation_2.h>
#include <CGAL/Exact_predicates_inexact_constructions_kernel.h>
#include <CGAL/Surface_mesh.h>
#include <CGAL/Triangulation_vertex_base_with_info_2.h>
#include <CGAL/ch_graham_andrew.h>
#include <CGAL/convex_hull_2.h>
#include <CGAL/convex_hull_3.h>
#include <CGAL/version.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using Kernel = CGAL::Exact_predicates_inexact_constructions_kernel;
using Point2 = Kernel::Point_2;
using Point3 = Kernel::Point_3;
using Vertex = CGAL::Triangulation_vertex_base_with_info_2<int32_t, Kernel>;
using Triangulation = CGAL::Delaunay_triangulation_2<Kernel, CGAL::Triangulation_data_structure_2<Vertex>>;
using Surface = CGAL::Surface_mesh<Point3>;

static std::vector<Point2> flat;
static std::vector<std::pair<Point2, int32_t>> numbered;
static std::vector<Point3> deep;

// What an op found last: coordinates, or corners of triangles.
struct Found {
  std::vector<double> points;
  std::vector<int32_t> triangles;
};

static size_t load(const std::string &path, int dims) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<double> v(file.tellg() / sizeof(double));
  file.seekg(0).read(reinterpret_cast<char *>(v.data()), v.size() * sizeof(double));
  flat.clear(), numbered.clear(), deep.clear();
  size_t n = v.size() / dims;
  for (size_t i = 0; i < n; i++) {
    const double *p = &v[i * dims];
    if (dims == 3)
      deep.emplace_back(p[0], p[1], p[2]);
    flat.emplace_back(p[0], p[1]);
    numbered.emplace_back(flat.back(), i);
  }
  return n;
}

static size_t hull(Found &found, bool graham) {
  std::vector<Point2> out;
  if (graham)
    CGAL::ch_graham_andrew(flat.begin(), flat.end(), std::back_inserter(out));
  else
    CGAL::convex_hull_2(flat.begin(), flat.end(), std::back_inserter(out));
  found.points.clear();
  for (const Point2 &p : out)
    found.points.insert(found.points.end(), {p.x(), p.y()});
  return out.size();
}

static size_t delaunay(Found &found, bool output) {
  Triangulation t;
  if (!output) { // no numbers either
    t.insert(flat.begin(), flat.end());
    return t.number_of_faces();
  }
  t.insert(numbered.begin(), numbered.end());
  std::vector<int32_t> &triangles = found.triangles;
  triangles.clear();
  triangles.reserve(3 * t.number_of_faces());
  for (auto f : t.finite_face_handles())
    triangles.insert(triangles.end(), {f->vertex(0)->info(), f->vertex(1)->info(), f->vertex(2)->info()});
  return t.number_of_faces();
}

static size_t hull3(Found &found) {
  Surface s;
  CGAL::convex_hull_3(deep.begin(), deep.end(), s);
  found.points.clear();
  for (auto v : s.vertices()) {
    const Point3 &p = s.point(v);
    found.points.insert(found.points.end(), {p.x(), p.y(), p.z()});
  }
  return s.number_of_vertices();
}

struct Op {
  std::string form;
  std::function<size_t(Found &)> run;
  Found found;
};

int main() {
  std::map<std::string, Op> ops = {
      {"hull2d", {"points", [](Found &f) { return hull(f, false); }, {}}},
      {"hull2d:graham-andrew", {"points", [](Found &f) { return hull(f, true); }, {}}},
      {"delaunay2d", {"triangles", [](Found &f) { return delaunay(f, true); }, {}}},
      {"delaunay2d:bare", {"count", [](Found &f) { return delaunay(f, false); }, {}}},
      {"hull3d", {"points", hull3, {}}},
  };
  std::cout << "{\"peer\":\"CGAL\",\"version\":\"" << CGAL_VERSION_STR << "\",\"ops\":[";
  const char *comma = "";
  for (auto &[name, op] : ops)
    std::cout << std::exchange(comma, ",") << '"' << name << '"';
  std::cout << "]}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what, name, path;
    int number = 0;
    words >> what;
    if (what == "load") {
      words >> number >> std::ws;
      std::getline(words, path);
      std::cout << "{\"points\":" << load(path, number) << "}" << std::endl;
    } else if (what == "run") {
      words >> name >> number;
      Op &op = ops.at(name);
      size_t count = 0;
      std::cout << "{\"ns\":[";
      for (int i = 0; i < number; i++) {
        auto start = std::chrono::steady_clock::now();
        count = op.run(op.found);
        auto took = std::chrono::steady_clock::now() - start;
        std::cout << (i ? "," : "") << std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
      }
      std::cout << "],\"count\":" << count << "}" << std::endl;
    } else if (what == "save") {
      words >> name >> std::ws;
      std::getline(words, path);
      const Op &op = ops.at(name);
      std::ofstream out(path, std::ios::binary);
      if (op.form == "points")
        out.write(reinterpret_cast<const char *>(op.found.points.data()), op.found.points.size() * sizeof(double));
      if (op.form == "triangles")
        out.write(reinterpret_cast<const char *>(op.found.triangles.data()), op.found.triangles.size() * sizeof(int32_t));
      out.close(); // before anybody is told to read it
      std::cout << "{\"form\":\"" << op.form << "\"}" << std::endl;
    }
  }
}
