<?php

namespace Heavy\Entity;

use Doctrine\ORM\Mapping as ORM;
use Symfony\Component\Serializer\Annotation\Groups;

#[ORM\Entity]
#[ORM\Table(name: 'heavy_product_translation')]
class ProductTranslation
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    public int $id;

    #[ORM\ManyToOne(targetEntity: Product::class, inversedBy: 'translations')]
    public Product $product;

    #[ORM\Column(type: 'string')]
    public string $locale;

    #[ORM\Column(type: 'string')]
    #[Groups(['shop'])]
    public string $name;

    #[ORM\Column(type: 'string')]
    #[Groups(['shop'])]
    public string $slug;

    #[ORM\Column(type: 'string')]
    #[Groups(['shop'])]
    public string $description;
}
