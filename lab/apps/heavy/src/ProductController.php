<?php

namespace Heavy;

use Doctrine\ORM\EntityManagerInterface;
use Heavy\Entity\Product;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\Serializer\SerializerInterface;

final class ProductController
{
    public function __construct(
        private EntityManagerInterface $entities,
        private SerializerInterface $serializer,
        private Pricing $pricing,
        private Parts $parts,
        private string $projectDir,
    ) {
    }

    public function show(Request $request, string $code): Response
    {
        $weight = require $this->projectDir . '/weight.php';
        $this->parts->build($weight['parts']);
        $product = $this->entities->createQuery(
            'SELECT p, t, v, vt, price, category, rate FROM Heavy\Entity\Product p
             LEFT JOIN p.translations t
             LEFT JOIN p.variants v WITH v.position <= :variants
             LEFT JOIN v.translations vt WITH vt.locale IN (:locales)
             LEFT JOIN v.prices price
             LEFT JOIN v.taxCategory category
             LEFT JOIN category.rates rate
             WHERE p.code = :code AND p.enabled = TRUE'
        )->setParameters(['code' => $code, 'variants' => $weight['variants'], 'locales' => ['en', 'de']])->getOneOrNullResult();
        if (!$product instanceof Product) {
            return new Response('{"error":"no such product"}', 404, ['Content-Type' => 'application/json']);
        }
        foreach ($product->variants as $variant) {
            $variant->price = $this->pricing->of($variant, 'web', 'EU');
        }
        $json = $this->serializer->serialize($product, 'json', ['groups' => ['shop']]);
        return new Response($json, 200, ['Content-Type' => 'application/json']);
    }
}
