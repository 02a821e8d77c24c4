<?php
$client = new class(null, ['location' => 'http://localhost/', 'uri' => 'urn:own', 'typemap' => [['type_ns' => 'urn:own', 'type_name' => 't',
    'to_xml' => function ($value) {
    for ($i = 0; $i < 3; $i++) {
        pause();
    }
    return "<x>$value</x>";
}]]]) extends SoapClient {
    public function __doRequest($request, $location, $action, $version, $oneWay = false, $parser = null): ?string {
        throw new Exception(strip_tags($request));
    }
};
meet('a');
for ($i = 0; $i < 5; $i++) {
    try {
        $client->f([new SoapVar($m, null, 't', 'urn:own')]);
    } catch (Exception $e) {
        echo trim($e->getMessage()) === $m ? '.' : $e->getMessage();
    }
}
echo $m;
