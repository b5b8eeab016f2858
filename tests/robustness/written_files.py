"""Files by kind as people and other programs write them, from which a search starts, too."""

WRITTEN = {
    ".csv": (
        "a;b;label\n1,5;2;x\n2,25;;y\n", "a\tb\tlabel\n1\t2\tx\n3\t4\t\n", "label\nx\n",
        '\ufeff"a","label"\r\n"1.5","x, y"\r\n"2","say ""no"""\r\n', "1,2\n3,4\n",
        "# by hand\n\na,b,label\n1,2,x\n", "a,a,,label\n1,2,3,x\n1,2,?,\n",
        "price,share,label\n$1,234.50,12 %,x\n€2,<0.1,y\n",
        "id,day,label\nr1,2026-01-02 03:04:05+01:00,x\nr2,1.5.2026,y\nr2,Jan 5 2026,\n",
        "Id,Label,Weight,Source,Target\na,A,1e-3,a,b\nb,B,inf,b,c\n",
        "a,label\n-999,x\nTrue,y\n1_000,\n0x1F,x\n9007199254740993,y\n",
        "source,target,weight\na,a,1\na,b,2\nb,a,-2\n",
        "a,tags,price,weight\n1,[a],<5,1\n2,\"('b', 'c')\",1e3,0\n3,(d),1.5,1\n",
        "id,label,user\n0,x,ada\n0,y,bob\n1.0,x,\n",
        "x,y,class\n500005,4999995,wheat\n,,beans\n1e300,nan,beans\n",
    ),
    ".graphml": (
        '<graphml><key id="k" for="node" attr.name="club" attr.type="int"/><graph '
        'edgedefault="directed"><node id="a"><data key="k">1</data></node><node id="b"/>'
        '<edge source="a" target="b" id="e"/><edge source="a" target="b"/></graph></graphml>',
    ),
    ".gml": (
        'graph [ directed 1 multigraph 1 node [ id 0 label "a" club "x" ] '
        'node [ id 1 label "&eacute;" v [ w 1 ] ] edge [ source 0 target 1 key 0 weight 1.5 ] '
        "edge [ source 1 target 0 key 1 ] ]",
    ),
    ".gexf": (
        '<gexf version="1.2" xmlns="http://www.gexf.net/1.2draft"><graph mode="dynamic" '
        'defaultedgetype="directed"><attributes class="node"><attribute id="0" title="club" '
        'type="liststring"/></attributes><nodes><node id="a" label="A" start="1"><attvalues>'
        '<attvalue for="0" value="[x]"/></attvalues><nodes><node id="c"/></nodes></node>'
        '<node id="b" pid="a"/></nodes><edges><edge source="a" target="b" weight="2"/></edges>'
        "</graph></gexf>",
    ),
    ".jsonl": (
        '{"text": "a", "label": "x", "answer": "accept"}\n{"text": "b", "answer": "reject"}\n',
        '{"text": "a", "accept": ["x"], "options": [{"id": "x"}], "meta": {"n": [1]}}\n',
    ),
    ".json": (
        '[{"text": "a", "id": 1, "label": "x"}, {"text": "b", "id": 2}]',
        '[{"data": {"text": "a"}, "annotations": []}]',
    ),
    ".geojson": (
        '{"type": "GeometryCollection", "geometries": '
        '[{"type": "MultiPolygon", "coordinates": []}]}',
    ),
    ".xml": (
        '<View><Text name="t" value="$text"/><Choices name="c" toName="t" choice="multiple">'
        '<Choice value="a" alias="b"/><Choice value="&amp;"/></Choices></View>',
    ),
}  # fmt: skip
